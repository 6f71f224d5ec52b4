"""Fitted models as files for other programs: an ONNX graph, or a Python module of numpy alone.

The module is `export_template` with names and weights filled in. Names come from data, so they
enter it as Python literals, and nowhere else.
"""

from __future__ import annotations

import base64
import io
import keyword
import sys
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from pprint import pformat
from typing import Any

import numpy as np

from piefs.core.model import Model, Scaling
from piefs.core.trees import named_arrays
from piefs.data.encoder import TableEncoder
from piefs.data.files import write_bytes
from piefs.errors import InputError
from piefs.estimators import export_template
from piefs.estimators.onnx import onnx_bytes

SUFFIXES = {"onnx": ".onnx", "numpy": ".py"}
MODEL, WEIGHTS = "MODEL: dict[str, Any] = {}\n", 'WEIGHTS = ""\n'
LINE = 96


@dataclass(frozen=True, eq=False)
class Exported:
    """A model with the names of what goes in and comes out.

    `labels` are a classifier's classes in the order of its outputs; `model.units` are those of a
    regression; `table` says how a file's columns became features (`TableEncoder.to_document`).
    """

    model: Model
    feature_names: list[str] | None = None
    labels: np.ndarray | None = None
    single_output: bool = True
    table: dict[str, Any] | None = None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What a prediction needs, by name."""
        return named_arrays(replace(self.model, metric=None))

    def document(self) -> dict[str, Any]:
        """All the rest, as plain values."""
        model, is_classifier = self.model, self.labels is not None
        scaling: Any = model.scaling
        task = "regression" if model.units is not None else "coordinates"
        net = getattr(model.maps, "net", None)
        return {
            "piefs_version": version("piefs-learn"),
            "task": "classification" if is_classifier else task,
            "n_features": len(scaling.center),
            "feature_names": self.feature_names,
            "classes": None if self.labels is None else self.labels.tolist(),
            "single_output": self.single_output,
            "clip": scaling.clip,
            "maps": type(model.maps).__name__,
            "activation": None if net is None else net.activation,
            "n_layers": 0 if net is None else len(net.weights),
        }


def exported(
    estimator: Any, *, labels: list[str] | None = None, table: TableEncoder | None = None
) -> Exported:
    """A fitted estimator's model and names; `labels` stand in for its own classes.

    Where its rows come from a table, that says the features' names.
    """
    if not hasattr(estimator, "model_"):
        raise InputError("this estimator is not fitted yet: call fit before export")
    if table is None and getattr(estimator, "table_", None) is not None:
        table = TableEncoder.from_document(estimator.table_)
    names = getattr(estimator, "feature_names_in_", None) if table is None else table.feature_names
    classes = getattr(estimator, "classes_", None)
    model = estimator.model_
    if hasattr(estimator, "target_center_"):
        units = Scaling(estimator.target_center_, estimator.target_scale_)
        model = replace(model, units=units)
    return Exported(
        model,
        None if names is None else [str(name) for name in names],
        None if classes is None else plain_labels(classes if labels is None else labels),
        bool(getattr(estimator, "single_output_", True)),
        None if table is None else table.to_document(),
    )


def plain_labels(classes: Any) -> np.ndarray:
    """Class labels in one of the types that every format has: text, whole numbers, or others."""
    labels = np.asarray(classes)
    if labels.dtype == object:
        labels = np.array(labels.tolist())
        if not all(type(one) is type(classes[0]) for one in classes):
            raise InputError("classes of several types cannot be exported: make them all text")
    kinds = {"U": str, "b": bool, "i": np.int64, "u": np.int64, "f": np.float64}
    if labels.dtype.kind not in kinds:
        raise InputError(f"classes of type {labels.dtype} cannot be exported: make them text")
    if labels.dtype.kind == "u" and labels.max() > np.iinfo(np.int64).max:
        raise InputError("classes beyond 2⁶³ cannot be exported: make them text")
    return labels.astype(kinds[labels.dtype.kind])


def format_of(path: Path) -> str:
    """The format that a file's name asks for; a module must have a name that can be imported."""
    if path.suffix == SUFFIXES["onnx"]:
        return "onnx"
    if path.suffix != SUFFIXES["numpy"]:
        kinds = ", ".join(f"{suffix} ({name})" for name, suffix in SUFFIXES.items())
        raise InputError(f"cannot export to {path}; its name must end in one of {kinds}")
    stem = path.stem
    if not stem.isidentifier() or keyword.iskeyword(stem):
        raise InputError(
            f"{path.name} could not be imported; use letters, digits and underscores alone, "
            "such as churn_model.py"
        )
    if stem in ("numpy", *sys.stdlib_module_names):
        raise InputError(f"{path.name} would hide Python's own module {stem}; take another name")
    return "numpy"


def export(model: Exported, path: Path) -> None:
    """Write a model in the format that the suffix says; whole, or not at all."""
    is_onnx = format_of(path) == "onnx"
    write_bytes(path, onnx_bytes(model) if is_onnx else module_source(model).encode())


def module_source(model: Exported) -> str:
    """The template with the model filled in, its weights at the end."""
    template = Path(export_template.__file__).read_text(encoding="utf-8")
    before, _, rest = template.partition(MODEL)
    between, _, after = rest.partition(WEIGHTS)
    document = pformat(model.document(), width=100, sort_dicts=False)
    archive = io.BytesIO()
    little = {k: a.astype(a.dtype.newbyteorder("<")) for k, a in model.arrays.items()}
    np.savez_compressed(archive, allow_pickle=False, **little)
    encoded = base64.b64encode(archive.getvalue()).decode("ascii")
    lines = "\n".join(encoded[i : i + LINE] for i in range(0, len(encoded), LINE))
    filled = MODEL.replace("{}\n", f"{document}\n")
    return f'{before}{filled}{between}{after}\n\nWEIGHTS = """\n{lines}\n"""\n'
