"""`piefs transform`, `predict`, `score` and `inspect`: a fitted model on other rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from piefs.cli.streaming import stream
from piefs.datasets import BUILTIN, Split, load
from piefs.datasets.own import label_texts, target_numbers
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.estimators.files import load_with_document
from piefs.io.documents import reading
from piefs.io.encoding import TableEncoder
from piefs.io.files import read_table, write_table
from piefs.io.large import is_to_be_streamed
from piefs.io.models import DOCUMENT
from piefs.io.tables import Table
from piefs.io.text_files import format_csv
from piefs.scores import classification_scores, regression_scores


@dataclass(frozen=True)
class Opened:
    """A model with the way it reads tables."""

    estimator: PIEFSClassifier | PIEFSRegressor | PIEFSTransformer
    document: dict[str, Any]
    encoder: TableEncoder

    @property
    def class_names(self) -> list[str]:
        """The names of the classes, in the order of the readout's outputs; none for numbers."""
        return self.document["class_names"]

    def predictor(self) -> PIEFSClassifier | PIEFSRegressor:
        """The estimator, if it can predict."""
        if isinstance(self.estimator, PIEFSTransformer):
            raise InputError("this model was fitted without labels: it transforms, and no more")
        return self.estimator


@dataclass(frozen=True)
class Rows:
    """Encoded rows, and where the user's own came from."""

    x: np.ndarray
    table: Table | None = None
    labels: np.ndarray | None = None


def open_model(path: Path) -> Opened:
    """The model of a run's folder, or of the model folder in it, with its way to read tables."""
    return with_table(path, *open_estimator(path))


def with_table(path: Path, estimator: Any, document: dict[str, Any]) -> Opened:
    """An estimator with the way its document says it reads tables."""
    if "table" not in document:
        raise InputError(f"{path} was saved from Python and says nothing about tables")
    with reading(path / DOCUMENT, "save the model again"):
        _check_names(document)
        encoder = TableEncoder.from_document(document["table"])
        if len(encoder.feature_names) != estimator.n_features_in_:
            raise InputError(f"{path}: the columns in model.json are not those of the model")
        classes = getattr(estimator, "classes_", None)
        if classes is not None and len(document["class_names"]) != len(classes):
            raise InputError(f"{path}: the class names in model.json are not those of the model")
        return Opened(estimator, document, encoder)


def _check_names(document: dict[str, Any]) -> None:
    """What names the data, the classes and the columns is text."""
    names = document["class_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("the class names in model.json are damaged")
    for name in ("dataset", "target", "id"):
        if not isinstance(document[name], str | None):
            raise InputError(f"{name} in model.json is damaged: it names something")


def open_estimator(path: Path) -> tuple[Any, dict[str, Any]]:
    """The fitted estimator of a run's folder, or of the model folder in it, and its document."""
    if not path.exists():
        raise InputError(f"there is no model at {path}")
    return load_with_document(path / "model" if (path / "model").is_dir() else path)


def read_rows(model: Opened, data: str, split: str, data_dir: Path | None) -> Rows:
    """Rows of a built-in data set's split, or of a file, as the model's features."""
    if data in BUILTIN:
        part = load(data, data_dir).splits[split]
        expected = model.estimator.n_features_in_
        if part.x.shape[1] != expected:
            raise InputError(f"{data} has {part.x.shape[1]} features, the model has {expected}")
        return Rows(part.x, labels=part.y)
    table = read_table(Path(data))
    return Rows(model.encoder.transform(_by_position(model.encoder, table)), table)


def _by_position(encoder: TableEncoder, table: Table) -> Table:
    """Columns of an array file have no names of their own: they are taken in their order."""
    names = [column.name for column in encoder.used]
    nameless = all(name == f"x{i}" for i, name in enumerate(table.names))
    if nameless and len(table.names) == len(names) and set(names) - set(table.names):
        columns = dict(zip(names, table.columns.values(), strict=True))
        return Table(columns, table.source)
    return table


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
        by_position = _by_position
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


def show_model(path: Path, *, as_json: bool) -> None:
    """What a model is, in a few lines."""
    model = open_model(path)
    document = model.document
    if as_json:
        print(json.dumps(document))
        return
    with reading(path / DOCUMENT, "save the model again"):
        tell_model(model, Console(highlight=False))  # which takes long on long words


def tell_model(model: Opened, console: Console) -> None:
    """The model's data, columns, settings and maps, for people."""
    document = model.document
    console.print(f"[bold]{document['estimator']}[/bold] fitted on {escape(document['dataset'])}")
    if document["target"] and not isinstance(model.estimator, PIEFSTransformer):
        console.print(f"predicts {escape(document['target'])}: {_described_target(model)}")
    console.print(f"{document['n_features']} features:")
    for line in model.encoder.describe()[:20]:
        console.print(f"  {escape(line)}", style="dim", soft_wrap=True)
    if len(model.encoder.columns) > 20:
        console.print(f"  … and {len(model.encoder.columns) - 20} more columns", style="dim")
    settings = RichTable("setting", "value")
    for name, value in document["settings"].items():
        settings.add_row(name, escape(str(value)))
    settings.add_row("seed", str(document["seed"]))
    console.print(settings)
    energies = ", ".join(f"{energy:.3g}" for energy in document["energies"])
    console.print(f"energies of the {len(document['energies'])} maps: {energies}")
    console.print(f"Gram error ‖C − I‖² on its training rows: {document['gram_error']:.4f}")
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    console.print(f"written with {escape(versions)}", style="dim")


def _described_target(model: Opened) -> str:
    if isinstance(model.estimator, PIEFSRegressor):
        mean, deviation = model.estimator.target_center_[0], model.estimator.target_scale_[0]
        return f"a number, {mean:.4g} ± {deviation:.4g} in training"
    return _shortened(model.class_names)


def _shortened(names: list[str]) -> str:
    more = f", … ({len(names)} classes)" if len(names) > 10 else ""
    return escape(", ".join(names[:10]) + more)
