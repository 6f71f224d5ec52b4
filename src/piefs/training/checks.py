"""What the settings of a fit may be; whatever no data can make sense of is refused."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from piefs.core.weighting import DAMPENINGS, Dampened, Static
from piefs.errors import InputError
from piefs.training.solvers import SOLVERS

if TYPE_CHECKING:
    from piefs.training.config import Metric, Settings

ACTIVATIONS = ("relu", "tanh", "softplus", "gelu", "silu", "sin")
CONSTRAINTS = ("volume", "trace")
DEEP = ("butterfly", "cayley")
"""The rotations that come in sizes: repetitions, and ranks."""
ROTATIONS = ("trotter", "chain", *DEEP)
METRICS = ("off", "diag", *ROTATIONS, "agop")
SCOPES = ("local", "global", "global-scales", "global-rotation", "composed")
"""Λ(x)U(x); ΛU; ΛU(x); Λ(x)U; Λ(x)U(x)V."""


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


COUNT, NUMBER = "a whole number of at least 1", "a number of at least 0"
POSITIVE, WIDTHS = "a number above 0", "a list of the widths of the hidden layers"
SHARE, PART = "a share of the steps below 1", "a share of the rows between 0 and 1"
KINDS = {
    COUNT: _is_count,
    NUMBER: lambda value: _is_number(value) and value >= 0,
    POSITIVE: lambda value: _is_number(value) and value > 0,
    SHARE: lambda value: _is_number(value) and 0 <= value < 1,
    PART: lambda value: _is_number(value) and 0 < value < 1,
    WIDTHS: lambda value: isinstance(value, tuple | list) and value and all(map(_is_count, value)),
}


def require(name: str, value: Any, *allowed: Any) -> None:
    """Refuse a value that is neither of an allowed kind nor an allowed value itself."""
    kinds = [one for one in allowed if one in KINDS]
    others = [one for one in allowed if one not in KINDS]
    if any(KINDS[kind](value) for kind in kinds) or any(value == other for other in others):
        return
    if kinds:
        words = " or ".join([kinds[0], *(f'"{one}"' for one in others if one)])
        raise InputError(f"{name} must be {words}, not {value!r}")
    raise InputError(f"unknown {name} {value!r}; choose one of {', '.join(map(str, allowed))}")


def check(settings: Settings) -> None:
    """Refuse values that no data can make sense of, naming what is accepted."""
    optimizer = settings.optimizer
    for name in ("n_components", "steps_per_component", "batch_size"):
        require(name, getattr(settings, name), COUNT, "auto")
    for name in ("patience", "log_every"):
        require(name, getattr(optimizer, name), COUNT)
    require("shuffle_window", optimizer.shuffle_window, COUNT, "auto", None)
    require("learning_rate", settings.learning_rate, POSITIVE)
    require("smoothness", settings.smoothness, NUMBER)
    require("weight_decay", settings.weight_decay, NUMBER, "auto")
    require("warmup", optimizer.warmup, SHARE)
    require("hidden", settings.hidden, WIDTHS)
    require("solver", settings.solver, *SOLVERS, "auto")
    require("activation", settings.activation, *ACTIVATIONS, "auto")
    require("optimizer", optimizer.name, "adam", "sgd")
    require("dtype", optimizer.dtype, "float32", "float64")
    require("gram", settings.gram, "batch", "population")
    require("early_stopping", settings.early_stopping, True, False, "auto")
    require("early_stopping", settings.held_out, PART)
    require("pretraining", settings.pretraining, "graph-laplacian", None)
    _check_weighting(settings.weighting)
    check_metric(settings.metric)


def _check_weighting(weighting: Any) -> None:
    if isinstance(weighting, Dampened):
        require("weighting", weighting.dampening, *DAMPENINGS, "static")
        require("t_orth", weighting.t_orth, POSITIVE)
        require("t_class", weighting.t_class, POSITIVE, "calibrated")
    elif isinstance(weighting, Static):
        for name in ("orth", "class_", "mde", "prefix"):
            require(name, getattr(weighting, name), NUMBER, None)
    elif not callable(weighting):
        raise InputError(f"weighting must be a name, Dampened, Static or a function: {weighting!r}")


def check_metric(metric: Metric) -> None:
    """Refuse an unknown metric, and what a known one would ignore."""
    name, scope, depth = metric.name, metric.scope, metric.depth
    require("anisotropy", metric.anisotropy, NUMBER)
    require("metric hidden", metric.hidden, WIDTHS, None)
    if callable(name) or name == "off":
        usual = {"scope": "local", "constraint": "volume", "bound": None, "depth": None}
        for field, value in usual.items():
            if getattr(metric, field) != value:
                kind = "a metric of your own" if callable(name) else 'the metric "off"'
                raise InputError(f"{field} has no meaning for {kind}: it is for named metrics")
        return
    require("metric", name, *METRICS)
    require("scope", scope, *SCOPES)
    require("constraint", metric.constraint, *CONSTRAINTS)
    require("bound", metric.bound, POSITIVE, None)
    require("depth", depth, COUNT, None)
    if name == "agop" and metric.anisotropy:
        raise InputError('"agop" is not learned by descent: use bound instead of anisotropy')
    scopes = {"agop": SCOPES[:1], "diag": SCOPES[:2]}.get(name, SCOPES)
    if scope not in scopes:
        listed = " or ".join(f'"{one}"' for one in scopes)
        raise InputError(f'the scope "{scope}" has no meaning for metric="{name}": use {listed}')
    if depth is not None and name not in DEEP:
        listed = ", ".join(f'"{one}"' for one in DEEP)
        raise InputError(f'a depth has no meaning for metric="{name}": it is for {listed}')
