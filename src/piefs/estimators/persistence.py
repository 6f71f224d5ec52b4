"""Fitted estimators as model folders and as plain values, and back.

A folder holds arrays and a JSON document, whose structure says of what the model is made; the
weights must fit it exactly. Nothing in a folder is ever executed.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from piefs.core.model import Model, Readout, Scaling
from piefs.core.trees import MISMATCH, named_arrays, structure_of, tree_of
from piefs.core.weighting import Dampened, Static
from piefs.data.encoder import TableEncoder
from piefs.data.files import DAMAGE, DOCUMENT, described, read_folder, reading, write_folder
from piefs.errors import InputError, ModelFileError
from piefs.training.checks import METRICS
from piefs.training.config import Metric, Optimizer, Settings
from piefs.training.diagnosis import Finding

if TYPE_CHECKING:
    from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer

ESTIMATORS: dict[str, tuple[str, ...]] = {
    "PIEFSClassifier": ("classes_",),
    "PIEFSRegressor": ("single_output_", "target_center_", "target_scale_"),
    "PIEFSTransformer": (),
}
"""The estimators, and the fitted attributes without which each cannot predict."""

FORMAT, FORMAT_2 = 3, 2
"""What is written, and what version 0.1.0 wrote (see `format2`)."""

FITTED: dict[str, tuple[str, type, tuple[Any, ...]]] = {
    "seed_": ("seed", int, ()),
    "n_features_in_": ("n_features", int, ()),
    "feature_names_in_": ("feature_names", object, ("d",)),
    "single_output_": ("targets.single_output", bool, ()),
    "target_center_": ("targets.center", float, ("o",)),
    "target_scale_": ("targets.scale", float, ("o",)),
    "gram_error_": ("gram_error", float, ()),
    "energies_": ("energies", float, ("K",)),
    "gram_": ("gram", float, ("K", "K")),
    "dirichlet_": ("dirichlet", float, ("K", "K")),
    "log_scale_ranges_": ("log_scale_ranges", float, (-1, 2)),
    "steps_": ("steps", int, (-1,)),
}
"""What is written of a fit beside its model, settings, classes and warnings, null if it has none:
the place in model.json, the type, and the shape in numbers of features, maps and outputs. The
training rows' coordinates and the history are not."""

LABEL_TYPES = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "U": str, "O": object}

PLAIN = {kind.__name__: kind for kind in (Settings, Metric, Optimizer, Dampened, Static, Finding)}
KIND = "piefs"
"""The key under which a plain value names the class that it stands for."""


def save(estimator: Any, folder: Path, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator; `extra` goes into the document under its own keys."""
    if not hasattr(estimator, "model_"):
        raise InputError("this estimator is not fitted yet: call fit before save")
    if callable(estimator.settings_.metric.name):
        raise InputError("a model with a metric of your own cannot be saved: it has no name")
    model, classes = estimator.model_, getattr(estimator, "classes_", None)
    document = {
        "estimator": type(estimator).__name__,
        "settings": estimator.settings_.document(),
        "standardize": bool(estimator.standardize),
        "n_outputs": len(model.readout.bias),
        "classes": None
        if classes is None
        else {"kind": classes.dtype.kind, "labels": classes.tolist()},
        "warnings": [asdict(finding) for finding in estimator.warnings_],
        "structure": structure_of(model),
    }
    for name, (path, _, _) in FITTED.items():
        value = getattr(estimator, name, None)
        part, _, last = path.rpartition(".")
        place = document.setdefault(part, {}) if part else document
        place[last] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if getattr(estimator, "table_", None) is not None:
        names = [] if classes is None else [str(label) for label in classes]
        document |= {"table": estimator.table_, "class_names": names, "dataset": "a frame"}
        document |= {"target": None, "id": None}
    write_folder(folder, named_arrays(model), document | (extra or {}), FORMAT)


def load(folder: str | Path) -> PIEFSClassifier | PIEFSRegressor | PIEFSTransformer:
    """The fitted estimator of a model folder, or of a run's, without `coordinates_` and history.

    If it was fitted on a table, it takes frames with the columns of that table, and predicts the
    names of its classes.
    """
    folder = Path(folder)
    is_run = (folder / "model" / DOCUMENT).is_file()
    estimator, document = load_with_document(folder / "model" if is_run else folder)
    names = document.get("class_names")
    if hasattr(estimator, "classes_") and names:
        with reading(folder, "save the model again", error=ModelFileError):
            estimator.classes_ = np.array([str(name) for name in names]).reshape(
                len(estimator.classes_)
            )
    return estimator


def load_with_document(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The fitted estimator and the whole document of a model folder."""
    arrays, document = read_folder(folder, (FORMAT, FORMAT_2))
    try:
        return _estimator(arrays, document), document
    except InputError as error:
        raise ModelFileError(f"{folder}: {error}") from error
    except DAMAGE as error:
        raise ModelFileError(f"{folder}: model.json is damaged ({described(error)})") from error


def _estimator(arrays: dict[str, np.ndarray], document: dict[str, Any]) -> Any:
    from piefs import estimators

    model: Any
    if document["estimator"] not in ESTIMATORS:
        raise ModelFileError(f"unknown estimator {document['estimator']!r}")
    metric = document["settings"]["metric"]
    name = metric["name"] if isinstance(metric, dict) else metric  # format 2 has the name alone
    if name not in METRICS:
        written_by = document["versions"]["piefs"]
        raise ModelFileError(f'no metric "{name}" in this version: load it with piefs {written_by}')
    if document["format_version"] == FORMAT_2:
        from piefs.estimators import format2

        settings = format2.settings(document)
        model = format2.model(settings, arrays)
    else:
        seed = int(document["seed"])
        settings = Settings.from_document(document["settings"] | {"seed": seed})
        model = tree_of(document["structure"], arrays)
    _check(model, settings, document)
    fitted = _fitted(model, document)
    if missing := set(ESTIMATORS[document["estimator"]]) - set(fitted):
        raise ModelFileError(f"model.json has no {', '.join(sorted(missing))}")
    estimator = getattr(estimators, document["estimator"])()
    estimator.set_params(
        **_keywords(settings, estimator.get_params()),
        standardize=document["standardize"],
        random_state=settings.seed,
    )
    estimator.settings_, estimator.model_ = settings, model
    estimator.center_, estimator.scale_ = model.scaling.center, model.scaling.scale
    estimator.n_components_ = len(model.mixing)
    vars(estimator).update(fitted)
    if "table" in document:
        encoder = TableEncoder.from_document(document["table"])
        if len(encoder.feature_names) != estimator.n_features_in_:
            raise ModelFileError("the columns in model.json are not those of the model")
        estimator.table_ = document["table"]
    return estimator


def _keywords(settings: Settings, known: dict[str, Any]) -> dict[str, Any]:
    """Keywords that say what the settings say."""
    usual: dict[str, Any] = vars(Settings.of(settings.preset, solver=settings.solver))
    found = {name: value for name, value in vars(settings).items() if value != usual[name]}
    if found.get("early_stopping") is True:
        found["early_stopping"] = settings.held_out
    said = {"preset": settings.preset, "solver": settings.solver}
    return {name: value for name, value in found.items() if name in known} | said


def _fitted(model: Any, document: dict[str, Any]) -> dict[str, Any]:
    """The fitted attributes of a document."""
    n_features, n_outputs = len(model.scaling.center), len(model.readout.bias)
    sizes: dict[Any, int] = {"d": n_features, "K": len(model.mixing), "o": n_outputs}
    found: dict[str, Any] = {}
    for name, (place, kind, shape) in FITTED.items():
        value: Any = document
        for part in place.split("."):
            value = value and value[part]
        if value is not None:
            lengths: Any = [sizes.get(length, length) for length in shape]
            found[name] = np.array(value, dtype=kind).reshape(lengths) if shape else kind(value)
    if "steps_" in found:
        found["n_iter_"] = int(found["steps_"].sum())
    warnings = document.get("warnings", [])  # older models have none
    found["warnings_"] = [Finding.from_document(one) for one in warnings]
    if (classes := document["classes"]) is not None:
        labels = np.array(classes["labels"], dtype=LABEL_TYPES[classes["kind"]])
        found["classes_"] = labels.reshape(n_outputs)
    return found


def _check(model: Any, settings: Settings, document: dict[str, Any]) -> None:
    """Refuse parts that do not fit each other, or the settings."""
    parts = [(model, Model), (model.scaling, Scaling), (model.readout, Readout)]
    if not all(isinstance(part, kind) for part, kind in parts) or not hasattr(
        model.maps, "coordinates"
    ):
        raise ModelFileError("model.json describes no model of an estimator")
    scaling, n_maps = model.scaling, settings.n_components
    if not isinstance(scaling.clip, int | float | None) or (scaling.clip or 1) <= 0:
        raise ModelFileError("what bounds the scaled rows is no positive number")
    n_features, n_outputs = document["n_features"], document["n_outputs"]
    for array, *shape in (
        (scaling.center, n_features),
        (scaling.scale, n_features),
        (model.mixing, n_maps, n_maps),
        (model.readout.weights, n_outputs, n_maps),
        (model.readout.bias, n_outputs),
    ):
        if list(array.shape) != shape:
            raise ModelFileError(f"{MISMATCH}: a part is {list(array.shape)}, not {shape}")


def to_plain(value: Any) -> Any:
    """A value with dicts that name a class in place of what only this library knows."""
    if isinstance(value, Model):
        try:
            return {KIND: "Model", "structure": structure_of(value), "arrays": named_arrays(value)}
        except ModelFileError:  # it has a metric of the user's own
            return value
    if isinstance(value, np.dtype):
        return {KIND: "dtype", "name": str(value)}
    if type(value) in PLAIN.values():
        return {KIND: type(value).__name__} | to_plain(vars(value))
    if type(value) is dict:
        return {name: to_plain(one) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(to_plain, value))
    return value


def from_plain(value: Any) -> Any:
    """The inverse of `to_plain`."""
    if type(value) in (list, tuple):
        return type(value)(map(from_plain, value))
    if type(value) is not dict:
        return value
    kind = value.get(KIND)
    if kind == "Model":
        return tree_of(value["structure"], value["arrays"])
    if kind == "dtype":
        return np.dtype(value["name"])
    found = {name: from_plain(one) for name, one in value.items() if kind is None or name != KIND}
    return PLAIN[kind](**found) if kind in PLAIN else found
