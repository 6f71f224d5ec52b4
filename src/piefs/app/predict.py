"""`piefs transform`, `predict` and `score`: a fitted model on other rows."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from piefs.app.model import EncodedRows, FittedModel, open_model, read_rows
from piefs.app.options import Json, Lazy, Model, OutFile, Quiet, Rows, bar
from piefs.data import BUILTIN, Split
from piefs.data.readers import check_writable, csv_texts, write_blocks
from piefs.data.streamed import is_to_be_streamed, open_streamed
from piefs.data.table import Block
from piefs.data.target import label_texts, target_numbers
from piefs.errors import InputError


def transform(
    model: Model, rows: Rows, out: OutFile = None, lazy: Lazy = None, quiet: Quiet = False
) -> None:
    """Write the coordinates φ₁ … φ_K of each row."""
    opened = open_model(model)
    names = opened.estimator.get_feature_names_out()

    def columns(x: np.ndarray) -> Block:
        return dict(zip(map(str, names), opened.estimator.transform(x).T, strict=True))

    _write(opened, rows, lazy, out, "coordinates", columns, quiet)


def predict(
    model: Model, rows: Rows, out: OutFile = None, lazy: Lazy = None, quiet: Quiet = False
) -> None:
    """Write the label and the class probabilities of each row, or the predicted number."""
    opened = open_model(model)
    predictor, names = opened.predictor, opened.class_names

    def columns(x: np.ndarray) -> Block:
        if opened.is_regressor:
            return {"prediction": predictor.predict(x)}
        probabilities = predictor.predict_proba(x)
        labels = np.array(names, dtype=object)[probabilities.argmax(axis=1)]
        by_class = zip((f"p({name})" for name in names), probabilities.T, strict=True)
        return {"prediction": labels} | dict(by_class)

    _write(opened, rows, lazy, out, "predictions", columns, quiet)


def _write(
    model: FittedModel,
    asked: Rows,
    lazy: bool | None,
    out: Path | None,
    what: str,
    compute: Callable[[np.ndarray], Block],
    quiet: bool,
) -> None:
    """Write what `compute` makes of the features of all rows, block by block if they are many."""
    if out is not None:
        check_writable(out)
    unseen, identifier = Counter[str](), model.document.get("id")
    is_streamed = asked.data not in BUILTIN and is_to_be_streamed(Path(asked.data), lazy)
    if is_streamed:
        n_rows, blocks = _streamed(model, asked.data)
    else:
        rows = read_rows(model, asked)
        n_rows, blocks = len(rows.x), iter([rows])

    def columns() -> Iterator[Block]:
        with bar(Console(stderr=True, quiet=quiet or not is_streamed), what) as update:
            update(total=n_rows)
            for rows in blocks:
                found = compute(rows.x)
                if rows.table is not None:
                    unseen.update(model.encoder.unseen(rows.table))
                    if identifier is not None:
                        found = {identifier: rows.table.column(identifier)} | found
                yield found
                update(advance=len(rows.x))

    if out is None:
        sys.stdout.writelines(csv_texts(columns()))
    else:
        try:
            write_blocks(out, columns(), n_rows)
        except OSError as error:
            raise InputError(f"cannot write to {out} ({error.strerror})") from error
    if not quiet:
        for name, count in unseen.items():
            note = f"note: {count:,} values of {name!r} were rare or unknown in training; "
            print(note + "they count as none of its categories", file=sys.stderr)
        if out is not None:
            print(f"{n_rows:,} rows of {what} are in {out}.", file=sys.stderr)


def _streamed(model: FittedModel, data: str) -> tuple[int, Iterator[EncodedRows]]:
    """How many rows a table has, and its blocks."""
    table, identifier = open_streamed(Path(data)), model.document.get("id")
    needed = [column.name for column in model.encoder.used]
    needed += [] if identifier is None else [identifier]
    # All columns if those that are needed go by other names, as in an array.
    names = needed if set(needed) <= set(table.names) else None
    return len(table), (model.encoded(block) for block in table.blocks(names))


def score(
    model: Model,
    rows: Rows,
    target: Annotated[
        str | None, typer.Option(help="The column with the truth, if its name differs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on rows whose labels, or numbers, are known."""
    opened = open_model(model)
    predictor, encoded = opened.predictor, read_rows(opened, rows)
    y, known = _truth(opened, encoded, target or opened.document["target"], rows.data)
    from piefs.report.scores import SHOWN, classification_scores, regression_scores

    measure = regression_scores if opened.is_regressor else classification_scores
    part = Split(encoded.x[known], y[known])
    result = {"n_rows": len(part)} | measure(predictor, part) | predictor.gram_errors(encoded.x)
    if as_json:
        print(json.dumps(result))
        return
    table = RichTable("score", f"{escape(rows.data)}, {len(part):,} rows")
    for name, label, form in SHOWN:
        if name in result:
            value = result[name]
            table.add_row(label, "–" if value is None or value != value else form(value))
    Console().print(table)


def _truth(
    model: FittedModel, rows: EncodedRows, target: str | None, data: str
) -> tuple[np.ndarray, np.ndarray]:
    """Class indices of the rows, or their numbers, and which rows have one."""
    if rows.table is None:
        if model.is_regressor:
            raise InputError(f"{data} is a data set of classes, and this model predicts numbers")
        labels = np.asarray(rows.labels)
        return labels, np.arange(len(labels))
    if target is None:
        raise InputError("name the column that holds the truth with --target")
    if model.is_regressor:
        y = target_numbers(rows.table, target)
        known = np.flatnonzero(~np.isnan(y))
    else:
        texts = label_texts(rows.table.column(target))
        known, index = np.flatnonzero(texts != ""), {n: c for c, n in enumerate(model.class_names)}
        if unknown := sorted(set(texts[known]) - set(index)):
            raise InputError(
                f"column {target!r} has classes the model does not know: {', '.join(unknown[:5])}"
            )
        y = np.array([index.get(text, -1) for text in texts], dtype=np.int32)
    if not len(known):
        raise InputError(f"column {target!r} is empty: there is nothing to compare with")
    return y, known
