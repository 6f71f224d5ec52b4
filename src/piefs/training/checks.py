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
DEEP = ("brickwall", "butterfly", "householder", "cayley", "exponential")
"""The rotations that come in sizes: sweeps, repetitions, reflections (an even number), ranks."""
ROTATIONS = ("trotter", "chain", *DEEP, "dense")
METRICS = ("off", "diag", *ROTATIONS, "agop")
SCOPES = ("local", "global", "global-scales", "global-rotation", "composed")
"""Λ(x)U(x); ΛU; ΛU(x); Λ(x)U; Λ(x)U(x)V."""


def check(settings: Settings) -> None:
    """Refuse values that no data can make sense of, naming what is accepted."""
    optimizer = settings.optimizer
    for name in ("n_components", "steps_per_component", "batch_size"):
        _check_count(name, getattr(settings, name), "auto")
    _check_count("graph_rows", settings.graph_rows)
    for name in ("patience", "log_every"):
        _check_count(name, getattr(optimizer, name))
    _check_count("shuffle_window", optimizer.shuffle_window, "auto", None)
    check_number("learning_rate", settings.learning_rate, above=0)
    check_number("smoothness", settings.smoothness)
    if settings.weight_decay != "auto":
        check_number("weight_decay", settings.weight_decay)
    if not (_is_number(optimizer.warmup) and 0 <= optimizer.warmup < 1):
        raise InputError(f"warmup must be a share of the steps below 1, not {optimizer.warmup!r}")
    check_widths("hidden", settings.hidden)
    _check_choice("solver", settings.solver, (*SOLVERS, "auto"))
    _check_choice("activation", settings.activation, (*ACTIVATIONS, "auto"))
    _check_choice("optimizer", optimizer.name, ("adam", "sgd"))
    _check_choice("dtype", optimizer.dtype, ("float32", "float64"))
    _check_choice("gram", settings.gram, ("batch", "population"))
    _check_choice("early_stopping", settings.early_stopping, (True, False, "auto"))
    if not (_is_number(settings.held_out) and 0 < settings.held_out < 1):
        raise InputError(
            f"early_stopping must be True, False, "
            f'"auto" or a share of the rows between 0 and 1, not {settings.held_out!r}'
        )
    if settings.pretraining not in (None, "graph-laplacian"):
        raise InputError(f'pretraining must be "graph-laplacian", not {settings.pretraining!r}')
    _check_weighting(settings.weighting)
    check_metric(settings.metric)


def _check_weighting(weighting: Any) -> None:
    if isinstance(weighting, Dampened):
        _check_choice("weighting", weighting.dampening, (*DAMPENINGS, "static"))
        check_number("t_orth", weighting.t_orth, above=0)
        if weighting.t_class != "calibrated":
            check_number("t_class", weighting.t_class, above=0)
    elif isinstance(weighting, Static):
        for name in ("orth", "class_", "mde", "prefix"):
            if (value := getattr(weighting, name)) is not None:
                check_number(name, value)
    elif not callable(weighting):
        raise InputError(f"weighting must be a name, Dampened, Static or a function: {weighting!r}")


def check_metric(metric: Metric) -> None:
    """Refuse an unknown metric, and what a known one would ignore."""
    usual = {"scope": "local", "constraint": "volume", "bound": None, "depth": None}
    given = [name for name, value in usual.items() if getattr(metric, name) != value]
    check_number("anisotropy", metric.anisotropy)
    if metric.hidden is not None:
        check_widths("metric hidden", metric.hidden)
    if callable(metric.name) or metric.name == "off":
        if given:
            kind = "a metric of your own" if callable(metric.name) else 'the metric "off"'
            raise InputError(f"{given[0]} has no meaning for {kind}: it is for named metrics")
        return
    _check_choice("metric", metric.name, METRICS)
    _check_choice("scope", metric.scope, SCOPES)
    _check_choice("constraint", metric.constraint, CONSTRAINTS)
    if metric.bound is not None:
        check_number("bound", metric.bound, above=0)
    if metric.name == "agop" and metric.anisotropy:
        raise InputError('"agop" is not learned by descent: use bound instead of anisotropy')
    scopes = {"agop": SCOPES[:1], "diag": SCOPES[:2]}.get(metric.name, SCOPES)
    if metric.scope not in scopes:
        listed = " or ".join(f'"{one}"' for one in scopes)
        raise InputError(
            f'the scope "{metric.scope}" has no meaning for metric="{metric.name}": use {listed}'
        )
    _check_count("depth", metric.depth, None)
    if metric.depth is not None and metric.name not in DEEP:
        listed = ", ".join(f'"{name}"' for name in DEEP)
        raise InputError(f'a depth has no meaning for metric="{metric.name}": it is for {listed}')
    if metric.name == "householder" and metric.depth is not None and metric.depth % 2:
        raise InputError(f"the depth of householder must be even, not {metric.depth} reflections")


def _check_choice(name: str, value: Any, allowed: tuple) -> None:
    if value not in allowed:
        listed = ", ".join(map(str, allowed))
        raise InputError(f"unknown {name} {value!r}; choose one of {listed}")


def _check_count(name: str, value: Any, *others: Any) -> None:
    if any(value is other or value == other for other in others):
        return
    if not (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1):
        raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_number(name: str, value: Any, *, above: float | None = None) -> None:
    """Refuse what is no number above a limit, or none of at least zero."""
    if not (_is_number(value) and (value >= 0 if above is None else value > above)):
        limit = "of at least 0" if above is None else f"above {above}"
        raise InputError(f"{name} must be a number {limit}, not {value!r}")


def check_widths(name: str, value: Any) -> None:
    """Refuse what does not list the widths of hidden layers."""
    widths = list(value) if isinstance(value, tuple | list) else []
    if not widths or not all(isinstance(w, Integral) and int(w) > 0 for w in widths):
        raise InputError(f"{name} must list the widths of the hidden layers, not {value!r}")
