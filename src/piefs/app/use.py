"""`piefs transform`, `predict` and `score`: a fitted model on other rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from piefs.app.opening import Opened, Rows, by_position, open_model, read_rows
from piefs.app.streaming import stream
from piefs.data import BUILTIN, Split
from piefs.data.large_files import is_to_be_streamed
from piefs.data.table_files import write_table
from piefs.data.tabular import label_texts, target_numbers
from piefs.data.text_files import format_csv
from piefs.errors import InputError
from piefs.estimators import PIEFSRegressor
from piefs.report.scores import classification_scores, regression_scores


def _identifiers(model: Opened, rows: Rows) -> dict[str, np.ndarray]:
    """The column that names rows, where there is one."""
    name = model.document.get("id")
    if name is None or rows.table is None:
        return {}
    return {name: rows.table.column(name)}


def _deliver(columns: dict[str, np.ndarray], out: Path | None, what: str, quiet: bool) -> None:
    if out is None:
        sys.stdout.write(format_csv(columns))
        return
    write_table(out, columns)
    if not quiet:
        n = len(next(iter(columns.values())))
        print(f"{n:,} rows of {what} are in {out}.", file=sys.stderr)


def _tell_unseen(model: Opened, rows: Rows, quiet: bool) -> None:
    """Say which categories the model has no column for."""
    if rows.table is None or quiet:
        return
    for name, count in model.encoder.unseen(rows.table).items():
        print(
            f"note: {count:,} values of {name!r} were rare or unknown in training; "
            "they count as none of its categories",
            file=sys.stderr,
        )


def write_coordinates(path: Path, data: str, out: Path | None, **options: Any) -> None:
    """Coordinates as columns phi1 … phiK, behind the column that names rows."""
    model = open_model(path)
    names = model.estimator.get_feature_names_out()

    def columns(x: np.ndarray) -> dict[str, np.ndarray]:
        phi = model.estimator.transform(x)
        return {str(name): phi[:, k] for k, name in enumerate(names)}

    _write_computed(model, data, out, "coordinates", columns, **options)


def write_predictions(path: Path, data: str, out: Path | None, **options: Any) -> None:
    """The number predicted for each row, or its most probable class and all probabilities."""
    model = open_model(path)
    predictor = model.predictor()

    def columns(x: np.ndarray) -> dict[str, np.ndarray]:
        if isinstance(predictor, PIEFSRegressor):
            return {"prediction": predictor.predict(x)}
        return _classes(predictor.predict_proba(x), model.class_names)

    _write_computed(model, data, out, "predictions", columns, **options)


def _write_computed(
    model: Opened,
    data: str,
    out: Path | None,
    what: str,
    compute: Callable[[np.ndarray], dict[str, np.ndarray]],
    *,
    split: str,
    data_dir: Path | None,
    quiet: bool,
    lazy: bool | None = None,
) -> None:
    """What is computed of the rows of a table, all at once or block by block."""
    if data not in BUILTIN and is_to_be_streamed(Path(data), lazy):
        named = {"encoder": model.encoder, "id_column": model.document.get("id")}
        stream(data, out, by_position=by_position, compute=compute, what=what, quiet=quiet, **named)
        return
    rows = read_rows(model, data, split, data_dir)
    _tell_unseen(model, rows, quiet)
    _deliver(_identifiers(model, rows) | compute(rows.x), out, what, quiet)


def _classes(probabilities: np.ndarray, class_names: list[str]) -> dict[str, np.ndarray]:
    """The column of the most probable class, and one of probabilities for every class."""
    labels = np.array(class_names, dtype=object)[probabilities.argmax(axis=1)]
    by_class = {f"p({name})": probabilities[:, c] for c, name in enumerate(class_names)}
    return {"prediction": labels} | by_class


def show_scores(
    path: Path,
    data: str,
    *,
    target: str | None,
    split: str,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Scores and Gram errors on rows with known labels, or with known numbers."""
    model = open_model(path)
    predictor = model.predictor()
    rows = read_rows(model, data, split, data_dir)
    target = target or model.document["target"]
    if isinstance(predictor, PIEFSRegressor):
        measure, (y, known) = regression_scores, _known_numbers(rows, target, data)
    else:
        measure, (y, known) = classification_scores, _known_labels(model, rows, target)
    part = Split(rows.x[known], y[known])
    result = {"n_rows": len(part)} | measure(predictor, part) | predictor.gram_errors(rows.x)
    if as_json:
        print(json.dumps(result))
        return
    table = RichTable("score", escape(data))
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


def _known_labels(model: Opened, rows: Rows, target: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Class indices of the rows, and which rows have one."""
    if rows.table is None:
        labels = np.asarray(rows.labels)
        return labels, np.arange(len(labels))
    if target is None:
        raise InputError("say which column holds the truth with --target")
    texts = label_texts(rows.table, target)
    index = {name: c for c, name in enumerate(model.class_names)}
    unknown = sorted({text for text in texts if text and text not in index})
    if unknown:
        raise InputError(
            f"column {target!r} has classes the model does not know: {', '.join(unknown[:5])}"
        )
    labeled = np.flatnonzero(texts != "")
    if not len(labeled):
        raise InputError(f"column {target!r} is empty: there is nothing to compare with")
    return np.array([index.get(text, -1) for text in texts], dtype=np.int32), labeled


def _known_numbers(rows: Rows, target: str | None, data: str) -> tuple[np.ndarray, np.ndarray]:
    """The true numbers of the rows, and which rows have one."""
    if rows.table is None:
        raise InputError(f"{data} is a data set of classes, and this model predicts numbers")
    if target is None:
        raise InputError("say which column holds the truth with --target")
    values = target_numbers(rows.table, target)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        raise InputError(f"column {target!r} is empty: there is nothing to compare with")
    return values, known
