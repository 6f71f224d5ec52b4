"""Model folders of format 2: flat settings, from which the shapes of the weights follow."""

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
from piefs.training.config import Settings
from piefs.training.state import fresh_metric

MOST_LAYERS = 100

BECAME: dict[str, str] = {
    "schedule": "solver",
    "metric": "metric.name",
    **{f"metric_{part}": f"metric.{part}" for part in ("scope", "constraint", "bound", "depth")},
    **{"metric_hidden": "metric.hidden", "anisotropy": "metric.anisotropy"},
    "optimizer": "optimizer.name",
    **{part: f"optimizer.{part}" for part in ("warmup", "patience", "log_every")},
    **{part: f"optimizer.{part}" for part in ("shuffle_window", "dtype")},
    "weighting": "weighting.dampening",
    **{part: f"weighting.{part}" for part in ("t_orth", "t_class", "gram")},
    "normalize_weights": "weighting.normalize",
    **{"orthogonality": "weighting.orth", "prefix_weight": "weighting.prefix"},
}
"""Where each flat setting is now: a keyword, or a field of one that takes an object."""


def settings(document: Mapping[str, Any]) -> Settings:
    """The settings of a document."""
    flat: dict[str, Any] = document["settings"]
    if flat["weighting"] not in (*DAMPENINGS, "static"):
        flat = flat | {"weighting": None}  # an object's repr: it mattered in training only
    keywords: dict[str, Any] = {}
    for name, value in flat.items():
        keyword, _, part = BECAME.get(name, name).partition(".")
        if part and value is not None:
            keywords.setdefault(keyword, {})[part] = value
        elif value is not None:
            keywords[keyword] = value
    if flat["weighting"] == "static":
        keywords["weighting"] = {"orth": 1.0, "gram": flat.get("gram")}
    found = Settings.of("default" if flat["whiten"] else "paper", **keywords)
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
