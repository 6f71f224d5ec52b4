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
from piefs.core.trees import filled, named_arrays
from piefs.training.config import Settings
from piefs.training.diagnosis import Finding
from piefs.training.state import fresh_metric


def to_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with arrays and dicts in place of what only this library knows."""
    if "model_" not in attributes:
        return attributes
    plain = attributes | {"_dtype": str(attributes["_dtype"])}
    plain["warnings_"] = [asdict(finding) for finding in attributes.get("warnings_", ())]
    settings = attributes["settings_"]
    if settings.is_plain:
        plain["settings_"] = settings.document()
    if isinstance(settings.metric.name, str):
        plain["model_"] = named_arrays(attributes["model_"])
    return plain


def from_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `to_plain`."""
    if "model_" not in attributes:
        return attributes
    settings, dtype = attributes["settings_"], np.dtype(attributes["_dtype"])
    if isinstance(settings, dict):
        settings = Settings.from_document(settings)
    model = attributes["model_"]
    if isinstance(model, dict):
        sizes = attributes["n_features_in_"], len(model["readout.bias"])
        model = filled(model_shapes(settings, *sizes, dtype), model)
    found = attributes.get("warnings_", ())  # in earlier pickles no plain values
    told = [Finding.from_document(one if isinstance(one, dict) else vars(one)) for one in found]
    fitted = {"settings_": settings, "_dtype": dtype, "model_": model, "warnings_": told}
    return attributes | fitted


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
