"""`piefs transform`, `predict` and `score`: a fitted model on other rows."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from piefs.app.model import EncodedRows, FittedModel, by_position, open_model, read_rows
from piefs.app.options import LargeRows, Rows
from piefs.data import BUILTIN, Split
from piefs.data.streamed import is_to_be_streamed, open_streamed
from piefs.data.target import label_texts, target_numbers
from piefs.data.writers import Block, check_streamable, csv_texts, write_blocks, write_table
from piefs.errors import InputError
from piefs.estimators import PIEFSRegressor
from piefs.report.scores import classification_scores, regression_scores


def write_coordinates(path: Path, rows: LargeRows, out: Path | None, *, quiet: bool) -> None:
    """Coordinates as columns phi1 … phiK, after the column that names rows."""
    model = open_model(path)
    names = model.estimator.get_feature_names_out()

    def columns(x: np.ndarray) -> Block:
        phi = model.estimator.transform(x)
        return {str(name): phi[:, k] for k, name in enumerate(names)}

    _write(model, rows, out, "coordinates", columns, quiet)


def write_predictions(path: Path, rows: LargeRows, out: Path | None, *, quiet: bool) -> None:
    """The number predicted for each row, or its most probable class and all probabilities."""
    model = open_model(path)
    predictor = model.predictor()

    def columns(x: np.ndarray) -> Block:
        if isinstance(predictor, PIEFSRegressor):
            return {"prediction": predictor.predict(x)}
        probabilities = predictor.predict_proba(x)
        labels = np.array(model.class_names, dtype=object)[probabilities.argmax(axis=1)]
        by_class = {f"p({name})": probabilities[:, c] for c, name in enumerate(model.class_names)}
        return {"prediction": labels} | by_class

    _write(model, rows, out, "predictions", columns, quiet)


def _write(
    model: FittedModel,
    asked: LargeRows,
    out: Path | None,
    what: str,
    compute: Callable[[np.ndarray], Block],
    quiet: bool,
) -> None:
    """Write what `compute` makes of the features of all rows, block by block if they are many."""
    unseen: Counter[str] = Counter()
    data = asked.data
    is_streamed = data not in BUILTIN and is_to_be_streamed(Path(data), asked.lazy)
    if is_streamed:
        if out is not None:
            check_streamable(out)
        n_rows, blocks = _streamed(model, data, unseen)
    else:
        rows = read_rows(model, asked)
        n_rows, blocks = len(rows.x), iter([rows])
        if rows.table is not None:
            unseen.update(model.encoder.unseen(rows.table))
    computed = (_identifiers(model, rows) | compute(rows.x) for rows in blocks)
    if is_streamed:
        computed = _with_progress(computed, n_rows, what, quiet)
    if out is None:
        sys.stdout.writelines(csv_texts(computed))
    else:
        try:
            write_blocks(out, computed, n_rows) if is_streamed else write_table(out, next(computed))
        except OSError as error:
            raise InputError(f"cannot write to {out} ({error.strerror})") from error
    if not quiet:
        _tell(unseen, None if out is None else f"{n_rows:,} rows of {what} are in {out}.")


def _streamed(
    model: FittedModel, data: str, unseen: Counter[str]
) -> tuple[int, Iterator[EncodedRows]]:
    """How many rows a table has, and its blocks; `unseen` counts categories as they are read."""
    table, encoder = open_streamed(Path(data)), model.encoder
    needed = [column.name for column in encoder.used]
    needed += [] if model.id_column is None else [model.id_column]
    # All columns if those that are needed go by other names (`by_position`).
    names = needed if set(needed) <= set(table.names) else None

    def blocks() -> Iterator[EncodedRows]:
        for block in table.blocks(names):
            features = by_position(encoder, block)
            unseen.update(encoder.unseen(features))
            yield EncodedRows(encoder.transform(features), block)

    return len(table), blocks()


def _identifiers(model: FittedModel, rows: EncodedRows) -> Block:
    """The column that names rows, if there is one."""
    if model.id_column is None or rows.table is None:
        return {}
    return {model.id_column: rows.table.column(model.id_column)}


def _with_progress(blocks: Iterator[Block], n: int, what: str, quiet: bool) -> Iterator[Block]:
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("", total=n)
        for block in blocks:
            yield block
            progress.advance(task, len(next(iter(block.values()))))


def _tell(unseen: Counter[str], where: str | None) -> None:
    """Say which categories the model has no column for, and where the results are."""
    for name, count in unseen.items():
        print(
            f"note: {count:,} values of {name!r} were rare or unknown in training; "
            "they count as none of its categories",
            file=sys.stderr,
        )
    if where is not None:
        print(where, file=sys.stderr)


def show_scores(path: Path, asked: Rows, *, target: str | None, as_json: bool) -> None:
    """Scores and Gram errors on rows with known labels, or with known numbers."""
    model = open_model(path)
    predictor = model.predictor()
    rows = read_rows(model, asked)
    target = target or model.document["target"]
    if isinstance(predictor, PIEFSRegressor):
        measure, (y, known) = regression_scores, _known_numbers(rows, target, asked.data)
    else:
        measure, (y, known) = classification_scores, _known_labels(model, rows, target)
    part = Split(rows.x[known], y[known])
    result = {"n_rows": len(part)} | measure(predictor, part) | predictor.gram_errors(rows.x)
    if as_json:
        print(json.dumps(result))
        return
    table = RichTable("score", escape(asked.data))
    for name, value in result.items():
        label = "calibration error (ece)" if name == "ece" else name
        table.add_row(label, _formatted(name, value))
    Console().print(table)


def _formatted(name: str, value: float | None) -> str:
    """A score as a table shows it; errors of numbers are in units of the target, of any size."""
    if value is None or value != value:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if name in ("rmse", "mae") else f"{value:.4f}"


def _known_labels(
    model: FittedModel, rows: EncodedRows, target: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Class indices of the rows, and which rows have one."""
    if rows.table is None:
        labels = np.asarray(rows.labels)
        return labels, np.arange(len(labels))
    texts = label_texts(rows.table, _named(target))
    index = {name: c for c, name in enumerate(model.class_names)}
    unknown = sorted({text for text in texts if text and text not in index})
    if unknown:
        raise InputError(
            f"column {target!r} has classes the model does not know: {', '.join(unknown[:5])}"
        )
    codes = np.array([index.get(text, -1) for text in texts], dtype=np.int32)
    return codes, _some(np.flatnonzero(texts != ""), target)


def _known_numbers(
    rows: EncodedRows, target: str | None, data: str
) -> tuple[np.ndarray, np.ndarray]:
    """The true numbers of the rows, and which rows have one."""
    if rows.table is None:
        raise InputError(f"{data} is a data set of classes, and this model predicts numbers")
    values = target_numbers(rows.table, _named(target))
    return values, _some(np.flatnonzero(~np.isnan(values)), target)


def _named(target: str | None) -> str:
    if target is None:
        raise InputError("name the column that holds the truth with --target")
    return target


def _some(known: np.ndarray, target: str | None) -> np.ndarray:
    if not len(known):
        raise InputError(f"column {target!r} is empty: there is nothing to compare with")
    return known
