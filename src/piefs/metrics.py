"""The learnable metric A(x) = Λ(x)U(x) inside the Dirichlet energy (paper, Sec. 2.4).

A metric is a pytree with three methods (see `Metric`); training knows nothing else about it. To
plug in your own, subclass `Metric` and pass a function `(key, n_features) -> Metric` wherever a
metric's name is accepted.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from piefs.gradients import GradientField
from piefs.networks import MLP, init_mlp
from piefs.rotations import ROTATIONS, Rotation


class Metric(eqx.Module):
    """A field of linear maps A(x) acting on gradients."""

    @abstractmethod
    def apply(self, x: Array, v: GradientField) -> GradientField:
        """The field x ↦ A(x)v(x)."""

    @abstractmethod
    def log_scales(self, x: Array) -> Array:
        """The logarithms log λ_i(x) of the singular values of A(x), shape (n, d)."""


class Off(Metric):
    """A = I: the plain Dirichlet energy. The gradient stays factored."""

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """The field itself."""
        return v

    def log_scales(self, x: Array) -> Array:
        """Zeros."""
        return jnp.zeros_like(x)


class Diag(Metric):
    """A(x) = Λ(x) with λ_i = exp(z_i − z̄), hence det Λ = 1 (eq:diagonal_constraint)."""

    scale_net: MLP

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λ(x)v."""
        return GradientField(jnp.exp(self.log_scales(x)) * v.dense())

    def log_scales(self, x: Array) -> Array:
        """The logits z − z̄, of zero mean by construction."""
        z = self.scale_net(x)
        return z - jnp.mean(z, axis=1, keepdims=True)


class RotatedDiag(Metric):
    """A(x) = Λ(x)U(x): rotate first, scale afterwards (eq:amat_apply_order).

    In the other order, UΛ, the energy ‖UΛv‖² = ‖Λv‖² would not depend on U at all.
    """

    scales: Diag
    angle_net: MLP
    rotation: Rotation = eqx.field(static=True)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λ(x)(U(x)v)."""
        return self.scales.apply(x, self.rotate(x, v))

    def rotate(self, x: Array, v: GradientField) -> GradientField:
        """U(x)v."""
        return GradientField(self.rotation.apply(self.angles(x), v.dense()))

    def angles(self, x: Array) -> Array:
        """ω_i(x) = π tanh(MLP(x)_i), in [−π, π]."""
        return jnp.pi * jnp.tanh(self.angle_net(x))

    def log_scales(self, x: Array) -> Array:
        """Those of Λ: U leaves singular values alone."""
        return self.scales.log_scales(x)


def anisotropy(log_scales: Array) -> Array:
    """The penalty mean_i (log λ_i)² of App. C, averaged over points."""
    return jnp.mean(log_scales**2)


MetricFactory = Callable[[Array, int], Metric]

METRICS = ("off", "diag", *ROTATIONS)


def init_metric(
    metric: str | MetricFactory,
    key: Array,
    n_features: int,
    hidden: Sequence[int] = (64, 64),
    dtype: Any = None,
) -> Metric:
    """A fresh metric on `n_features` inputs, by name or from a user's factory.

    Named metrics start as A(x) = I. With one feature there is nothing to rotate and det Λ = 1
    leaves Λ = 1, so there every named metric is `Off`.
    """
    if callable(metric):
        return metric(key, n_features)
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")
    if metric == "off" or n_features == 1:
        return Off()
    scale_key, angle_key = jax.random.split(key)
    scales = Diag(_head(scale_key, n_features, hidden, n_features, dtype))
    if metric == "diag":
        return scales
    rotation = ROTATIONS[metric]
    n_angles = rotation.n_angles(n_features)
    return RotatedDiag(scales, _head(angle_key, n_features, hidden, n_angles, dtype), rotation)


def _head(key: Array, n_features: int, hidden: Sequence[int], n_out: int, dtype: Any) -> MLP:
    return init_mlp(key, (n_features, *hidden, n_out), "relu", dtype, output_scale=0.0)
