"""A fitted model opened from its folder, and the rows it is used on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from piefs.app.options import Rows
from piefs.data import BUILTIN, load
from piefs.data.encoder import TableEncoder
from piefs.data.files import DOCUMENT, reading
from piefs.data.readers import read_table
from piefs.data.table import Table
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.estimators.persistence import load_with_document


@dataclass(frozen=True)
class FittedModel:
    """A fitted estimator with the way it reads tables."""

    estimator: PIEFSClassifier | PIEFSRegressor | PIEFSTransformer
    document: dict[str, Any]
    encoder: TableEncoder

    @property
    def class_names(self) -> list[str]:
        """The names of the classes, in the order of the readout's outputs; none for numbers."""
        return self.document["class_names"]

    @property
    def id_column(self) -> str | None:
        """The column that names rows, if there is one."""
        return self.document.get("id")

    def predictor(self) -> PIEFSClassifier | PIEFSRegressor:
        """The estimator, if it can predict."""
        if isinstance(self.estimator, PIEFSTransformer):
            raise InputError(
                "this model was fitted without labels: it transforms, but cannot predict"
            )
        return self.estimator


@dataclass(frozen=True)
class EncodedRows:
    """Features of rows, and the table or the labels that they came with."""

    x: np.ndarray
    table: Table | None = None
    labels: np.ndarray | None = None


def open_estimator(path: Path) -> tuple[Any, dict[str, Any]]:
    """The estimator of a run's folder, or of the model folder in it, and its document."""
    return load_with_document(path / "model" if (path / "model").is_dir() else path)


def open_model(path: Path) -> FittedModel:
    """The model of a run's folder, or of the model folder in it, with its way to read tables."""
    return with_table(path, *open_estimator(path))


def with_table(path: Path, estimator: Any, document: dict[str, Any]) -> FittedModel:
    """An estimator with the way its document says it reads tables."""
    if "table" not in document:
        raise InputError(f"{path} was saved from Python and does not say how to read tables")
    with reading(path / DOCUMENT, "save the model again"):
        _check_names(document)
        encoder = TableEncoder.from_document(document["table"])
        if len(encoder.feature_names) != estimator.n_features_in_:
            raise InputError(f"{path}: the columns in model.json are not those of the model")
        classes = getattr(estimator, "classes_", None)
        if classes is not None and len(document["class_names"]) != len(classes):
            raise InputError(f"{path}: the class names in model.json are not those of the model")
        return FittedModel(estimator, document, encoder)


def _check_names(document: dict[str, Any]) -> None:
    """What names the data, the classes and the columns must be text."""
    names = document["class_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("the class names in model.json are damaged")
    for name in ("dataset", "target", "id"):
        if not isinstance(document[name], str | None):
            raise InputError(f"{name} in model.json is damaged: it is no name")


def read_rows(model: FittedModel, asked: Rows) -> EncodedRows:
    """Rows of a built-in data set's split, or of a file, as the model's features."""
    if asked.data in BUILTIN:
        part = load(asked.data, asked.data_dir).splits[asked.split]
        found, expected = part.x.shape[1], model.estimator.n_features_in_
        if found != expected:
            raise InputError(f"{asked.data} has {found} features, the model has {expected}")
        return EncodedRows(part.x, labels=part.y)
    table = read_table(Path(asked.data))
    return EncodedRows(model.encoder.transform(by_position(model.encoder, table)), table)


def by_position(encoder: TableEncoder, table: Table) -> Table:
    """Columns of an array file have no names of their own: they are taken in their order."""
    names = [column.name for column in encoder.used]
    nameless = all(name == f"x{i}" for i, name in enumerate(table.names))
    if nameless and len(table.names) == len(names) and set(names) - set(table.names):
        columns = dict(zip(names, table.columns.values(), strict=True))
        return Table(columns, table.source)
    return table
