"""Fitted estimators as model folders, and back.

A folder holds arrays and a JSON document; the document's structure says of what the model is made,
and the weights must fit it exactly. Nothing in a folder is ever executed.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from piefs.core.model import Model
from piefs.core.trees import MISMATCH, filled, named_arrays, structure_of, tree_of
from piefs.core.weighting import DAMPENINGS
from piefs.data.files import DAMAGE, described, read_folder, write_folder
from piefs.errors import InputError, ModelFileError
from piefs.estimators.base import BasePIEFS
from piefs.estimators.classifier import PIEFSClassifier
from piefs.estimators.keywords import SHARED
from piefs.estimators.regressor import PIEFSRegressor
from piefs.estimators.renamed import from_flat
from piefs.estimators.states import model_shapes
from piefs.estimators.transformer import PIEFSTransformer
from piefs.training.config import Settings
from piefs.training.diagnosis import Finding

ESTIMATORS: dict[str, type[BasePIEFS]] = {
    "PIEFSClassifier": PIEFSClassifier,
    "PIEFSRegressor": PIEFSRegressor,
    "PIEFSTransformer": PIEFSTransformer,
}
FORMAT, FLAT_FORMAT = 3, 2
"""What is written, and what earlier versions wrote: flat settings that shapes follow from."""

MOST_LAYERS = 100
LABEL_TYPES = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "U": str, "O": object}


def save(estimator: BasePIEFS, folder: Path, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator; `extra` goes into the document under its own keys."""
    if not hasattr(estimator, "model_"):
        raise InputError("this estimator is not fitted yet: call fit before save")
    if callable(estimator.settings_.metric.name):
        raise InputError("a model with a metric of your own cannot be saved: it has no name")
    document = _document(estimator) | {"structure": structure_of(estimator.model_)}
    write_folder(folder, named_arrays(estimator.model_), document | (extra or {}), FORMAT)


def _document(estimator: BasePIEFS) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    return {
        "estimator": type(estimator).__name__,
        "settings": estimator.settings_.document(),
        "standardize": bool(estimator.standardize),
        "seed": estimator.seed_,
        "n_features": estimator.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "n_outputs": int(estimator.model_.readout.bias.shape[0]),
        "classes": None
        if classes is None
        else {"kind": classes.dtype.kind, "labels": classes.tolist()},
        "targets": _target_units(estimator),
        "gram_error": estimator.gram_error_,
        "energies": estimator.energies_.tolist(),
        "gram": estimator.gram_.tolist(),
        "dirichlet": estimator.dirichlet_.tolist(),
        "log_scale_ranges": estimator.log_scale_ranges_.tolist(),
        "steps": estimator.steps_.tolist(),
        "steps_allowed": estimator.n_iter_budget_,
        "warnings": [asdict(finding) for finding in estimator.warnings_],
    }


def _target_units(estimator: BasePIEFS) -> dict[str, Any] | None:
    """What a regressor knows of its targets."""
    if not isinstance(estimator, PIEFSRegressor):
        return None
    return {
        "single_output": bool(estimator.single_output_),
        "center": estimator.target_center_.tolist(),
        "scale": estimator.target_scale_.tolist(),
    }


def load(folder: str | Path) -> PIEFSClassifier | PIEFSRegressor | PIEFSTransformer:
    """The fitted estimator of a model folder.

    It predicts and transforms as the one that was saved; the training rows' coordinates and the
    history are not kept.
    """
    return load_with_document(Path(folder))[0]


def load_with_document(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The fitted estimator and the whole document of a model folder."""
    arrays, document = read_folder(folder, (FORMAT, FLAT_FORMAT))
    try:
        return _rebuild(arrays, document), document
    except InputError as error:
        raise ModelFileError(f"{folder}: {error}") from error
    except DAMAGE as error:
        raise ModelFileError(f"{folder}: model.json is damaged ({described(error)})") from error


def _rebuild(arrays: dict[str, np.ndarray], document: dict[str, Any]) -> Any:
    if document["estimator"] not in ESTIMATORS:
        raise ModelFileError(f"unknown estimator {document['estimator']!r}")
    settings = _settings(document)
    estimator: Any = ESTIMATORS[document["estimator"]](
        **_keywords(settings),
        standardize=document["standardize"],
        random_state=document["seed"],
    )
    estimator.settings_ = settings
    estimator.seed_ = settings.seed
    estimator._dtype = np.dtype(settings.optimizer.dtype)
    estimator.n_features_in_ = _count(document, "n_features", 1)
    n_outputs = _count(document, "n_outputs", 0)
    if document["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(document["feature_names"], dtype=object)
    sizes = estimator.n_features_in_, n_outputs
    _check_sizes(settings, *sizes, arrays)
    if document["format_version"] == FLAT_FORMAT:
        estimator.model_ = _of_flat_format(settings, sizes, arrays)
    else:
        estimator.model_ = tree_of(document["structure"], arrays)
    _check_model(estimator.model_, settings, sizes)
    scaling: Any = estimator.model_.scaling
    estimator.center_, estimator.scale_ = scaling.center, scaling.scale
    estimator.gram_error_ = float(document["gram_error"])
    n_components = estimator.n_components_ = settings.n_components
    energies = np.array(document["energies"], dtype=float)
    estimator.energies_ = energies.reshape(n_components)
    for name in ("gram", "dirichlet"):
        matrix = np.array(document[name], dtype=float).reshape(n_components, n_components)
        setattr(estimator, f"{name}_", matrix)
    estimator.log_scale_ranges_ = np.array(document["log_scale_ranges"], dtype=float)
    estimator.steps_ = np.array(document["steps"], dtype=int)
    estimator.n_iter_ = int(estimator.steps_.sum())
    estimator.n_iter_budget_ = int(document["steps_allowed"])
    found = document.get("warnings", [])  # older models have none
    estimator.warnings_ = [Finding.from_document(one) for one in found]
    if document["classes"] is not None:
        kind, labels = document["classes"]["kind"], document["classes"]["labels"]
        estimator.classes_ = np.array(labels, dtype=LABEL_TYPES[kind])
        if estimator.classes_.shape != (n_outputs,):
            raise ModelFileError("the classes do not fit the readout")
    if isinstance(estimator, PIEFSRegressor):
        units, shape = document["targets"], (n_outputs,)
        estimator.single_output_ = bool(units["single_output"])
        estimator.target_center_ = np.array(units["center"], dtype=float).reshape(shape)
        estimator.target_scale_ = np.array(units["scale"], dtype=float).reshape(shape)
    return estimator


def _of_flat_format(
    settings: Settings, sizes: tuple[int, int], arrays: dict[str, np.ndarray]
) -> Model:
    """The model of format 2, which has the scaling twice: in the model's precision and double."""
    for name in ("center", "scale"):
        arrays.pop(name)
        arrays[f"scaling.{name}"] = arrays.pop(f"{name}64")
    return filled(model_shapes(settings, *sizes, np.dtype(settings.optimizer.dtype)), arrays)


def _check_model(model: Any, settings: Settings, sizes: tuple[int, int]) -> None:
    """Refuse parts that do not fit each other, or the settings."""
    if not isinstance(model, Model) or model.scaling is None:
        raise ModelFileError("model.json describes no model of an estimator")
    n_maps, (n_features, n_outputs) = settings.n_components, sizes
    expected = {
        "scaling.center": (model.scaling.center, (n_features,)),
        "scaling.scale": (model.scaling.scale, (n_features,)),
        "mixing": (model.mixing, (n_maps, n_maps)),
        "readout.weights": (model.readout.weights, (n_outputs, n_maps)),
    }
    for name, (array, shape) in expected.items():
        if array.shape != shape:
            raise ModelFileError(f"{MISMATCH}: {name} is {list(array.shape)}, not {list(shape)}")
    if str(model.mixing.dtype) != settings.optimizer.dtype:
        raise ModelFileError(f"{MISMATCH}: they are {model.mixing.dtype}")


def _count(document: dict[str, Any], name: str, least: int) -> int:
    """A whole number that is not too small."""
    if type(document[name]) is not int or document[name] < least:
        raise ModelFileError(f"{name} must be a whole number from {least}, not {document[name]!r}")
    return document[name]


def _check_sizes(
    settings: Settings, n_features: int, n_outputs: int, arrays: dict[str, np.ndarray]
) -> None:
    """Refuse sizes that the weights do not have before anything of that size is built."""
    maps, bias = arrays["maps.net.weights.0"].shape, arrays["readout.bias"].shape
    if (*maps[:2], *bias) != (settings.n_components, n_features, n_outputs):
        raise ModelFileError(
            f"the weights do not fit model.json: they are of {list(maps[:2])} maps and inputs and "
            f"{list(bias)} outputs"
        )
    if max(len(settings.hidden), len(settings.metric.widths)) > MOST_LAYERS:
        raise ModelFileError(f"a network has at most {MOST_LAYERS} hidden layers")
    largest = max(max(array.shape, default=0) for array in arrays.values())
    if (settings.metric.depth or 0) > largest:
        raise ModelFileError("the weights do not fit model.json: the depth of its metric is larger")


def _settings(document: dict[str, Any]) -> Settings:
    """The settings of a document; those of earlier versions were flat, None if not used."""
    found = document["settings"]
    if "solver" in found:
        return Settings.from_document(found | {"seed": int(document["seed"])})
    if isinstance(found["weighting"], str) and found["weighting"] not in (*DAMPENINGS, "static"):
        found = found | {"weighting": None}  # an object's repr: it mattered in training only
    preset = "default" if found["whiten"] else "paper"
    settings = replace(Settings.of(preset, **from_flat(found)), seed=int(document["seed"]))
    return replace(settings, asked={})


def _keywords(settings: Settings) -> dict[str, Any]:
    """Keywords that say what the settings say."""
    usual = Settings.of(settings.preset, solver=settings.solver)
    found: dict[str, Any] = {"preset": settings.preset, "solver": settings.solver}
    differing = (n for n in SHARED if getattr(settings, n) != getattr(usual, n))
    found |= {name: getattr(settings, name) for name in differing}
    if "early_stopping" in found and settings.early_stopping is True:
        found["early_stopping"] = settings.held_out
    return found
