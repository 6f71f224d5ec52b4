"""The learnable metric A(x) = Λ(x)U(x) inside the Dirichlet energy (paper, Sec. 2.4).

A metric is a pytree with three methods (see `Metric`); training knows nothing else about it. To
plug in your own, subclass `Metric` and pass a function `(key, n_features) -> Metric` wherever a
metric's name is accepted.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from piefs.gradients import DenseField, GradientField, Parts, gather
from piefs.networks import MLP, init_mlp
from piefs.rotations import ROTATIONS, Rotation


class Metric(eqx.Module):
    """A field of linear maps A(x) acting on gradients.

    `block_rows` is a hint to training: energies of larger batches are summed over blocks of about
    that many rows, which keeps the metric's intermediate (rows, d) arrays in a core's cache.
    """

    block_rows: ClassVar[int | None] = None

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
        log_scales, vectors = self._log_scales(x, v.stride), v.parts(v.stride)
        pairs = zip(log_scales, vectors, strict=True)
        return DenseField(*(jnp.exp(z) * part for z, part in pairs))

    def log_scales(self, x: Array) -> Array:
        """The logits z − z̄, of zero mean by construction."""
        return gather(self._log_scales(x, 1))

    def _log_scales(self, x: Array, stride: int) -> Parts:
        # z is affine in the last layer, so subtracting z̄ from it centres z without a pass over it.
        return self.scale_net.with_centred_outputs().dealt(x, stride)


class RotatedDiag(Metric):
    """A(x) = Λ(x)U(x): rotate first, scale afterwards (eq:amat_apply_order).

    In the other order, UΛ, the energy ‖UΛv‖² = ‖Λv‖² would not depend on U at all.
    """

    block_rows: ClassVar[int | None] = 512
    scales: Diag
    angle_net: MLP
    rotation: Rotation = eqx.field(static=True)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λ(x)(U(x)v)."""
        return self.scales.apply(x, self.rotate(x, v))

    def rotate(self, x: Array, v: GradientField) -> GradientField:
        """U(x)v."""
        stride = self.rotation.stride
        return DenseField(*self.rotation.apply(self._angles(x, stride), v.parts(stride)))

    def angles(self, x: Array) -> Array:
        """ω_i(x) = π tanh(MLP(x)_i), in [−π, π]."""
        return gather(self._angles(x, 1))

    def _angles(self, x: Array, stride: int) -> Parts:
        return tuple(jnp.pi * jnp.tanh(part) for part in self.angle_net.dealt(x, stride))

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
