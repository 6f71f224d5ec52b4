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
from piefs.core.trees import filled, named_arrays
from piefs.core.weighting import Dampened, Static
from piefs.training.config import Optimizer, TrainConfig
from piefs.training.diagnosis import Finding
from piefs.training.state import fresh_metric

NAMED_WEIGHTINGS = {"Dampened": Dampened, "Static": Static}


def to_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with arrays and dicts in place of what only this library knows."""
    if "model_" not in attributes:
        return attributes
    plain = attributes | {"_dtype": str(attributes["_dtype"])}
    plain["warnings_"] = [asdict(finding) for finding in attributes.get("warnings_", ())]
    plain["config_"] = _plain_config(attributes["config_"])
    if isinstance(attributes["config_"].metric, str):
        plain["model_"] = named_arrays(attributes["model_"])
    return plain


def from_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `to_plain`."""
    if "model_" not in attributes:
        return attributes
    config, dtype = _config(attributes["config_"]), np.dtype(attributes["_dtype"])
    model = attributes["model_"]
    if isinstance(model, dict):
        sizes = attributes["n_features_in_"], len(model["readout.bias"])
        model = filled(model_shapes(config, *sizes, dtype), model)
    found = attributes.get("warnings_", ())  # in earlier pickles no plain values
    told = [Finding.from_document(one if isinstance(one, dict) else vars(one)) for one in found]
    fitted = {"config_": config, "_dtype": dtype, "model_": model, "warnings_": told}
    return attributes | fitted


def _plain_config(config: TrainConfig) -> dict[str, Any]:
    plain = dict(vars(config)) | {"optimizer": asdict(config.optimizer)}
    name = type(config.weighting).__name__
    if type(config.weighting) is NAMED_WEIGHTINGS.get(name):
        plain["weighting"] = {"name": name} | vars(config.weighting)
    return plain


def _config(plain: dict[str, Any]) -> TrainConfig:
    fields: dict[str, Any] = plain | {"optimizer": Optimizer(**plain["optimizer"])}
    if isinstance(plain["weighting"], dict):
        keywords = dict(plain["weighting"])
        fields["weighting"] = NAMED_WEIGHTINGS[keywords.pop("name")](**keywords)
    return TrainConfig(**fields)


def model_shapes(config: TrainConfig, n_features: int, n_outputs: int, dtype: np.dtype) -> Model:
    """A model of the shapes and types that the config implies, without values."""

    def built() -> Model:
        key = jax.random.key(0)
        one = init_map(key, n_features, config.hidden, config.activation, dtype)
        return Model(
            None,
            stack([one] * config.n_components),
            jnp.eye(config.n_components, dtype=dtype),
            fresh_metric(config, key, n_features, dtype),
            init_readout(n_outputs, config.n_components, dtype),
        )

    with jax.enable_x64(dtype == np.float64):
        shapes = jax.eval_shape(built)
    return replace(shapes, scaling=Scaling(np.zeros(n_features), np.ones(n_features)))
