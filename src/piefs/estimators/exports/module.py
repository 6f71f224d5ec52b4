"""A fitted model as one Python file that needs numpy alone: `template.py` with names and weights.

Names come from data, so they enter the file as Python literals, and nowhere else.
"""

from __future__ import annotations

import base64
import io
from importlib.metadata import version
from importlib.resources import files
from pprint import pformat
from typing import Any

import numpy as np

from piefs.estimators.exports.plain import PlainModel, gelu_tail

MODEL, WEIGHTS = "MODEL: dict[str, Any] = {}\n", 'WEIGHTS = ""\n'
LINE = 96


def module_source(model: PlainModel) -> str:
    """The whole file."""
    template = files("piefs.estimators.exports").joinpath("template.py").read_text(encoding="utf-8")
    encoded = base64.b64encode(_archive(_arrays(model))).decode("ascii")
    lines = "\n".join(encoded[i : i + LINE] for i in range(0, len(encoded), LINE))
    before, between, after = _cut(template)
    document = pformat(_document(model), width=100, sort_dicts=False)
    filled = (before, MODEL.replace("{}\n", f"{document}\n"), between)
    return "".join((*filled, f'WEIGHTS = """\n{lines}\n"""\n', after))


def _cut(template: str) -> tuple[str, str, str]:
    """What is before, between and behind the two places to fill in."""
    before, _, rest = template.partition(MODEL)
    between, _, after = rest.partition(WEIGHTS)
    return before, between, after


def _document(model: PlainModel) -> dict[str, Any]:
    """Names and settings as literals."""
    table = model.table or _numbers(model)
    columns = [column for column in table["columns"] if column["kind"] != "dropped"]
    fields = ("name", "kind", "fill", "categories")
    return {
        "piefs_version": version("piefs-learn"),
        "task": model.task,
        "n_features": model.n_features,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "classes": None if model.labels is None else model.labels.tolist(),
        "single_output": model.single_output,
        "is_scaled": model.center is not None,
        "activation": model.activation,
        "n_layers": len(model.weights),
        "fills_gaps": table["missing"] == "impute",
        "columns": [{field: column[field] for field in fields} for column in columns],
        "id": model.identifier,
    }


def _numbers(model: PlainModel) -> dict[str, Any]:
    """The table of a model that was fitted to an array: a number for each feature."""
    names = model.feature_names or tuple(f"x{i}" for i in range(model.n_features))
    column = {"kind": "number", "fill": 0.0, "categories": []}
    return {"missing": "error", "columns": [{"name": name} | column for name in names]}


def _arrays(model: PlainModel) -> dict[str, np.ndarray]:
    arrays = {"mixing": model.mixing}
    arrays |= {f"weights{layer}": w for layer, w in enumerate(model.weights)}
    arrays |= {f"biases{layer}": b for layer, b in enumerate(model.biases)}
    if model.center is not None and model.scale is not None:
        arrays |= {"center": model.center, "scale": model.scale}
    if model.task != "coordinates":
        arrays |= {"readout_weights": model.readout_weights, "readout_bias": model.readout_bias}
    if model.target_center is not None and model.target_scale is not None:
        arrays |= {"target_center": model.target_center, "target_scale": model.target_scale}
    if model.activation == "gelu":
        arrays["gelu_tail"] = gelu_tail(model.dtype)
    return arrays


def _archive(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    little: dict[str, Any] = {
        name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()
    }
    np.savez_compressed(stream, **little)
    return stream.getvalue()
