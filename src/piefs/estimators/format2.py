"""Model folders of format 2: flat settings, from which the shapes of the weights follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from piefs.core.losses import init_readout
from piefs.core.maps import init_map, stack
from piefs.core.model import Model, Scaling
from piefs.core.networks import generator
from piefs.core.trees import MISMATCH, filled
from piefs.core.weighting import DAMPENINGS
from piefs.errors import ModelFileError
from piefs.estimators.renamed import from_flat
from piefs.training.config import Settings
from piefs.training.state import fresh_metric

MOST_LAYERS = 100


def settings(document: Mapping[str, Any]) -> Settings:
    """The settings of a document."""
    flat = document["settings"]
    if flat["weighting"] not in (*DAMPENINGS, "static"):
        flat = flat | {"weighting": None}  # an object's repr: it mattered in training only
    found = Settings.of("default" if flat["whiten"] else "paper", **from_flat(flat))
    return replace(found, seed=int(document["seed"]), asked={})


def model(settings: Settings, arrays: dict[str, np.ndarray]) -> Model:
    """The model of these arrays; its scaling is there twice, in its precision and in double."""
    for name in ("center", "scale"):
        arrays.pop(name)
        arrays[f"scaling.{name}"] = arrays.pop(f"{name}64")
    if max(len(settings.hidden), len(settings.metric.widths)) > MOST_LAYERS:
        raise ModelFileError(f"a network has at most {MOST_LAYERS} hidden layers")
    if (settings.metric.depth or 0) > max(max(a.shape, default=0) for a in arrays.values()):
        raise ModelFileError(f"{MISMATCH}: the depth of its metric is larger")
    return filled(_shapes(settings, arrays), arrays)


def _shapes(settings: Settings, arrays: dict[str, np.ndarray]) -> Model:
    """A model of the shapes and types that the settings imply, without values."""
    n_maps, n_features = arrays["maps.net.weights.0"].shape[:2]
    n_outputs, dtype = len(arrays["readout.bias"]), np.dtype(settings.optimizer.dtype)

    def built() -> Model:
        random = generator(0)
        one = init_map(random, n_features, settings.hidden, settings.activation, dtype)
        metric = fresh_metric(settings, random, n_features, dtype)
        readout = init_readout(n_outputs, n_maps, dtype)
        return Model(None, stack([one] * n_maps), jnp.eye(n_maps, dtype=dtype), metric, readout)

    with jax.enable_x64(dtype == np.float64):
        shapes = jax.eval_shape(built)
    return replace(shapes, scaling=Scaling(np.zeros(n_features), np.ones(n_features)))
