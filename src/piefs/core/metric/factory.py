"""Metrics by name."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from piefs.core.arrays import split_key
from piefs.core.metric.agop import init_closed_form
from piefs.core.metric.base import Metric, Off
from piefs.core.metric.rotated import Composed, RotatedDiag, SharedRotation
from piefs.core.metric.scales import Diag, SharedDiag
from piefs.core.networks import MLP, init_mlp
from piefs.core.rotations import DEEP, ROTATIONS, make_rotation
from piefs.errors import InputError

MetricFactory = Callable[[Array, int], Metric]

METRICS = ("off", "diag", *ROTATIONS, "agop")

SCOPES = ("local", "global", "global-scales", "global-rotation", "composed")
"""Λ(x)U(x); ΛU; ΛU(x); Λ(x)U; Λ(x)U(x)V."""

MOST_DENSE_FEATURES = 64


def init_metric(
    metric: str | MetricFactory,
    key: Array,
    n_features: int,
    hidden: Sequence[int] = (64, 64),
    dtype: Any = None,
    *,
    scope: str = "local",
    constraint: str = "volume",
    bound: float | None = None,
    depth: int | None = None,
) -> Metric:
    """A fresh metric on `n_features` inputs, by name or from a user's factory.

    Named metrics start as A(x) = I. With one feature there is nothing to rotate and either
    constraint leaves Λ = 1, so there every named metric is `Off`.
    """
    if callable(metric):
        return metric(key, n_features)
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")
    check_options(metric, scope, depth)
    if metric == "off" or n_features == 1:
        return Off()
    dtype = dtype or float
    if metric == "agop":
        return init_closed_form(n_features, constraint, bound, dtype)

    def network(key: Array, n_out: int) -> MLP:
        return init_mlp(key, (n_features, *hidden, n_out), "relu", dtype, output_scale=0.0)

    scale_key, angle_key = split_key(key, 2)
    if scope in ("global", "global-scales"):
        scales: Metric = SharedDiag(jnp.zeros(n_features, dtype), constraint, bound)
    else:
        scales = Diag(network(scale_key, n_features), constraint, bound)
    if metric == "diag":
        return scales
    _check_size(metric, n_features)
    rotation = make_rotation(metric, depth)
    n_parameters = rotation.n_parameters(n_features)
    shared = SharedRotation(jnp.zeros(n_parameters, dtype), rotation)
    if scope in ("global", "global-rotation"):
        return Composed(shared, scales)
    first = shared if scope == "composed" else None
    return RotatedDiag(scales, network(angle_key, n_parameters), rotation, first)


def check_options(metric: str, scope: str = "local", depth: int | None = None) -> None:
    """Refuse a scope or a depth that means nothing to a named metric."""
    scopes = {"off": SCOPES[:1], "agop": SCOPES[:1], "diag": SCOPES[:2]}.get(metric, SCOPES)
    if scope not in scopes:
        listed = " or ".join(f'"{one}"' for one in scopes)
        choice = f": choose {listed}" if len(scopes) > 1 else ""
        raise InputError(f'the scope "{scope}" has no meaning for metric="{metric}"{choice}')
    if depth is not None and metric not in DEEP:
        listed = ", ".join(f'"{name}"' for name in DEEP)
        raise InputError(f'a depth has no meaning for metric="{metric}": it is for {listed}')
    if metric == "householder" and depth is not None and depth % 2:
        raise InputError(
            f"{depth} reflections are no rotation: the depth of householder must be even"
        )


def _check_size(metric: str, n_features: int) -> None:
    if metric == "dense" and n_features > MOST_DENSE_FEATURES:
        raise InputError(
            f'metric="dense" takes the exponential of a {n_features} × {n_features} matrix: it is '
            f'for at most {MOST_DENSE_FEATURES} features; use "cayley" or "householder" for more'
        )
