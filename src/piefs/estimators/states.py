"""A fitted estimator's attributes as plain values, so that pickles and skops files hold no others.

What is made of plain values is rebuilt from them; a metric or a weighting of the user's own stays
the object that it is.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from piefs.core.losses import init_readout
from piefs.core.maps import init_map, stack
from piefs.core.model import Model, Scaling
from piefs.core.networks import generator
from piefs.core.trees import named_arrays, structure_of, tree_of
from piefs.core.weighting import Dampened, Static
from piefs.errors import ModelFileError
from piefs.training.config import Metric, Optimizer, Settings
from piefs.training.diagnosis import Finding
from piefs.training.state import fresh_metric

OBJECTS = {kind.__name__: kind for kind in (Metric, Optimizer, Dampened, Static)}


def to_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with arrays and dicts in place of what only this library knows."""
    plain = {name: _plain(value) for name, value in attributes.items()}
    if "model_" not in attributes:
        return plain
    plain["_dtype"] = str(attributes["_dtype"])
    plain["warnings_"] = [asdict(finding) for finding in attributes.get("warnings_", ())]
    settings = attributes["settings_"]
    if settings.is_plain:
        plain["settings_"] = settings.document()
    return plain


def from_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `to_plain`."""
    found = {name: _object(value) for name, value in attributes.items()}
    if "model_" not in attributes:
        return found
    if isinstance(settings := attributes["settings_"], dict):
        found["settings_"] = Settings.from_document(settings)
    found["_dtype"] = np.dtype(attributes["_dtype"])
    found["warnings_"] = [Finding.from_document(one) for one in attributes["warnings_"]]
    return found


def _plain(value: Any) -> Any:
    """An object of ours as a dict that names its kind; one with a function in it as it is."""
    if isinstance(value, Model):
        try:
            return {"kind": structure_of(value), "arrays": named_arrays(value)}
        except ModelFileError:
            return value
    if type(value) in OBJECTS.values() and not any(map(callable, vars(value).values())):
        return {"kind": type(value).__name__} | vars(value)
    return value


def _object(value: Any) -> Any:
    """What `_plain` has turned into a dict."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if isinstance(kind, dict):
        return tree_of(kind, value["arrays"])
    if kind not in OBJECTS:
        return value
    return OBJECTS[kind](**{name: one for name, one in value.items() if name != "kind"})


def model_shapes(settings: Settings, n_features: int, n_outputs: int, dtype: np.dtype) -> Model:
    """A model of the shapes and types that the settings imply, without values."""

    def built() -> Model:
        key = generator(0)
        one = init_map(key, n_features, settings.hidden, settings.activation, dtype)
        return Model(
            None,
            stack([one] * settings.n_components),
            jnp.eye(settings.n_components, dtype=dtype),
            fresh_metric(settings, key, n_features, dtype),
            init_readout(n_outputs, settings.n_components, dtype),
        )

    with jax.enable_x64(dtype == np.float64):
        shapes = jax.eval_shape(built)
    return replace(shapes, scaling=Scaling(np.zeros(n_features), np.ones(n_features)))
