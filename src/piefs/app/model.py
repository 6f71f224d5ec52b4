"""A fitted model opened from its folder, the rows it is used on; `piefs inspect` and `export`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from piefs.app.options import Force, Json, Model, Quiet, Rows
from piefs.data import BUILTIN, load
from piefs.data.encoder import TableEncoder
from piefs.data.files import DOCUMENT, reading
from piefs.data.readers import read_table
from piefs.data.table import Table, listing
from piefs.errors import InputError
from piefs.report.findings import settings_in_use

COLUMNS_SHOWN, CLASSES_SHOWN = 20, 10


@dataclass(frozen=True)
class FittedModel:
    """A fitted estimator with the way it reads tables."""

    estimator: Any
    document: dict[str, Any]
    encoder: TableEncoder

    @property
    def class_names(self) -> list[str]:
        """The names of the classes, in the order of the readout's outputs; none for numbers."""
        return list(self.document["class_names"])

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts numbers."""
        return type(self.estimator).__name__ == "PIEFSRegressor"

    @property
    def predictor(self) -> Any:
        """The estimator, if it can predict."""
        if not hasattr(self.estimator, "predict"):
            raise InputError(
                "this model was fitted without labels: it transforms, but cannot predict"
            )
        return self.estimator

    def encoded(self, table: Table) -> "EncodedRows":
        """The rows of a table as features; columns of an array, without names, go by order."""
        names = [column.name for column in self.encoder.used]
        nameless = all(name == f"x{i}" for i, name in enumerate(table.names))
        if nameless and len(table.names) == len(names) and set(names) - set(table.names):
            table = Table(dict(zip(names, table.columns.values(), strict=True)), table.source)
        return EncodedRows(self.encoder.transform(table), table)


@dataclass(frozen=True)
class EncodedRows:
    """Features of rows, and the table or the labels that they came with."""

    x: np.ndarray
    table: Table | None = None
    labels: np.ndarray | None = None


def open_model(path: Path) -> FittedModel:
    """The model of a run's folder, or of the model folder in it, with its way to read tables."""
    return _with_table(path, *_loaded(path))


def _loaded(path: Path) -> tuple[Any, dict[str, Any]]:
    from piefs.estimators.persistence import load_with_document

    return load_with_document(path / "model" if (path / "model").is_dir() else path)


def _with_table(path: Path, estimator: Any, document: dict[str, Any]) -> FittedModel:
    """An estimator with the way its document says it reads tables."""
    if "table" not in document:
        raise InputError(f"{path} was saved from Python and does not say how to read tables")
    with reading(path / DOCUMENT, "save the model again"):
        encoder = TableEncoder.from_document(document["table"])
        classes = list(document["class_names"])
        others = filter(None, (document["dataset"], document["target"], document["id"]))
        if not all(isinstance(name, str) for name in (*classes, *others)):
            raise ValueError("a name is not text")
        if len(encoder.feature_names) != estimator.n_features_in_:
            raise ValueError("the columns are not those of the model")
        if len(classes) != len(getattr(estimator, "classes_", classes)):
            raise ValueError("the class names are not those of the model")
        if hasattr(estimator, "classes_"):  # commands know classes by their numbers
            estimator.classes_ = np.arange(len(classes))
        return FittedModel(estimator, document, encoder)


def read_rows(model: FittedModel, asked: Rows) -> EncodedRows:
    """Rows of a built-in data set's split, or of a file, as the model's features."""
    if asked.data in BUILTIN:
        part = load(asked.data, asked.data_dir).splits[asked.split]
        found, expected = part.x.shape[1], model.estimator.n_features_in_
        if found != expected:
            raise InputError(f"{asked.data} has {found} features, the model has {expected}")
        return EncodedRows(part.x, labels=part.y)
    return model.encoded(read_table(Path(asked.data)))


# --- inspect -----------------------------------------------------------------------------------


def inspect(model: Model, as_json: Json = False) -> None:
    """Show what a model is: its data, columns, target, settings and maps."""
    opened = open_model(model)
    if as_json:
        print(json.dumps(opened.document))
        return
    with reading(model / DOCUMENT, "save the model again"):
        tell_model(opened, Console(highlight=False))  # which takes long on long words


def tell_model(model: FittedModel, console: Console) -> None:
    """The model's data, columns, settings and maps, for people."""
    document, columns = model.document, model.encoder.describe()
    console.print(f"[bold]{document['estimator']}[/bold] fitted on {escape(document['dataset'])}")
    if document["target"] and hasattr(model.estimator, "predict"):
        console.print(f"predicts {escape(document['target'])}: {_described_target(model)}")
    console.print(f"{document['n_features']} features:")
    for line in columns[:COLUMNS_SHOWN]:
        console.print(f"  {escape(line)}", style="dim", soft_wrap=True)
    if len(columns) > COLUMNS_SHOWN:
        console.print(f"  … and {len(columns) - COLUMNS_SHOWN} more columns", style="dim")
    settings = RichTable("setting", "value")
    known = {"seed": document.get("seed")} | document["settings"]
    for name, value in settings_in_use(known).items():
        settings.add_row(name, escape(value if isinstance(value, str) else json.dumps(value)))
    console.print(settings)
    energies = ", ".join(f"{energy:.3g}" for energy in document["energies"])
    console.print(f"energies of the {len(document['energies'])} maps: {energies}", soft_wrap=True)
    console.print(f"Gram error ‖C − I‖² on its training rows: {document['gram_error']:.4f}")
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    console.print(f"written with {escape(versions)}", style="dim")


def _described_target(model: FittedModel) -> str:
    if model.is_regressor:
        mean, deviation = model.estimator.target_center_[0], model.estimator.target_scale_[0]
        return f"a number, {mean:.4g} ± {deviation:.4g} in training"
    return escape(listing(model.class_names, CLASSES_SHOWN))


# --- export ------------------------------------------------------------------------------------


def export(
    model: Model,
    chosen: Annotated[
        Literal["onnx", "numpy"] | None,
        typer.Option(
            "--format",
            help="onnx: a graph for ONNX runtimes; numpy: one Python file that needs numpy alone. "
            "By default the name of --out decides.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file (.onnx or .py) to write, else model.onnx or model.py in MODEL."
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as a file for programs without piefs: coordinates, labels, probabilities."""
    from piefs.estimators.export import SUFFIXES, exported, format_of
    from piefs.estimators.export import export as write

    if out is None:
        if chosen is None:
            raise InputError(f"say what to write: --format {'|'.join(SUFFIXES)}, or --out FILE")
        out = model / f"model{SUFFIXES[chosen]}"
    if format_of(out) != (chosen or format_of(out)):
        raise InputError(f"{out} does not go with --format {chosen}: its name ends otherwise")
    if out.exists() and not force:
        raise InputError(f"{out} exists; choose another --out, or --force to replace it")
    estimator, document = _loaded(model)
    names: dict[str, Any] = {}
    if "table" in document:  # as `piefs fit` leaves it
        opened = _with_table(model, estimator, document)
        names = {"labels": opened.class_names or None, "table": opened.encoder}
    plain = exported(estimator, **names)
    write(plain, out)
    if not quiet:
        features = "" if plain.feature_names is None else f" ({listing(plain.feature_names)})"
        n = plain.document()["n_features"]
        said = f"X has {n} numbers a row, encoded and without gaps{features}"
        print(f"{out}: {said}.", file=sys.stderr)
