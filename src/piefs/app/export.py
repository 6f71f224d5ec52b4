"""`piefs export`: a fitted model as a file for programs without piefs."""

from __future__ import annotations

import sys
from pathlib import Path

from piefs.app.model import open_estimator, with_table
from piefs.data.table import listing
from piefs.errors import InputError
from piefs.estimators.export import SUFFIXES, Exported, export, exported, format_of


def export_model(
    path: Path, chosen: str | None, out: Path | None, *, force: bool, quiet: bool
) -> None:
    """Write the model of a folder in the format that is named, or that the file's name asks for."""
    out = _file(path, chosen, out)
    if out.exists() and not force:
        raise InputError(f"{out} exists; choose another --out, or --force to replace it")
    model = _read(path)
    export(model, out)
    if not quiet:
        names = "" if model.feature_names is None else f" ({listing(model.feature_names)})"
        n_features = model.document()["n_features"]
        said = f"{out}: X has {n_features} numbers a row, encoded and without gaps{names}."
        print(said, file=sys.stderr)


def _file(path: Path, chosen: str | None, out: Path | None) -> Path:
    """Where to write: beside the model unless it is said."""
    if out is None:
        if chosen is None:
            raise InputError(f"say what to write: --format {'|'.join(SUFFIXES)}, or --out FILE")
        return path / f"model{SUFFIXES[chosen]}"
    if format_of(out) != (chosen or format_of(out)):
        raise InputError(f"{out} does not go with --format {chosen}: its name ends otherwise")
    return out


def _read(path: Path) -> Exported:
    """The model of a folder, with the names of columns and classes where `piefs fit` left them."""
    estimator, document = open_estimator(path)
    if "table" not in document:
        return exported(estimator)
    opened = with_table(path, estimator, document)
    return exported(estimator, labels=opened.class_names or None, table=opened.encoder)
