"""`piefs inspect`: what a fitted model is, for people or as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from piefs.app.model import FittedModel, open_model
from piefs.data.files import DOCUMENT, reading
from piefs.estimators import PIEFSRegressor, PIEFSTransformer


def show_model(path: Path, *, as_json: bool) -> None:
    """What a model is, in a few lines."""
    model = open_model(path)
    document = model.document
    if as_json:
        print(json.dumps(document))
        return
    with reading(path / DOCUMENT, "save the model again"):
        tell_model(model, Console(highlight=False))  # which takes long on long words


def tell_model(model: FittedModel, console: Console) -> None:
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
    for name, value in ({"seed": document.get("seed")} | document["settings"]).items():
        settings.add_row(name, escape(_shown(value)))
    console.print(settings)
    energies = ", ".join(f"{energy:.3g}" for energy in document["energies"])
    console.print(f"energies of the {len(document['energies'])} maps: {energies}")
    console.print(f"Gram error ‖C − I‖² on its training rows: {document['gram_error']:.4f}")
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    console.print(f"written with {escape(versions)}", style="dim")


def _shown(value: Any) -> str:
    """A setting in a few words: of an object its name, and the fields that are set."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if not isinstance(value, dict):
        return str(value)
    fields = {name: field for name, field in value.items() if field is not None}
    name = fields.pop("name", None)
    if name == "off":
        return name
    words = [f"{name}={_shown(field)}" for name, field in fields.items()]
    return ", ".join(words if name is None else [str(name), *words])


def _described_target(model: FittedModel) -> str:
    if isinstance(model.estimator, PIEFSRegressor):
        mean, deviation = model.estimator.target_center_[0], model.estimator.target_scale_[0]
        return f"a number, {mean:.4g} ± {deviation:.4g} in training"
    return _shortened(model.class_names)


def _shortened(names: list[str]) -> str:
    more = f", … ({len(names)} classes)" if len(names) > 10 else ""
    return escape(", ".join(names[:10]) + more)
