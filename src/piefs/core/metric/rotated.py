"""Metrics with an orthogonal factor: a network's U(x), one U for all points, or both."""

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from piefs.core.gradients import DenseField, GradientField, Parts
from piefs.core.metric.base import Metric
from piefs.core.networks import MLP
from piefs.core.rotations import Rotation, rotate


class RotatedDiag(Metric):
    """A(x) = Λ(x)U(x): rotate first, scale afterwards (eq:amat_apply_order).

    In the other order, UΛ, the energy ‖UΛv‖² = ‖Λv‖² would not depend on U at all. `scales` is
    Λ(x) or a Λ shared by all points; `first`, where there is one, is a rotation that all points
    share and that acts before U(x).
    """

    block_rows: ClassVar[int | None] = 512
    scales: Metric
    angle_net: MLP
    rotation: Rotation = eqx.field(static=True)
    first: Metric | None = None

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λ(x)(U(x)v)."""
        v = v if self.first is None else self.first.apply(x, v)
        return self.scales.apply(x, self.rotate(x, v))

    def rotate(self, x: Array, v: GradientField) -> GradientField:
        """U(x)v."""
        vectors = v.parts(self.rotation.stride)
        return DenseField(*self.rotation.apply(self._parameters(x), vectors))

    def rotation_parameters(self, x: Array) -> Array:
        """ω(x), shape (n, n_parameters): for products of Givens rotations π tanh(MLP(x)_i)."""
        return jnp.concatenate(self.rotation.squash((self.angle_net(x),)), axis=1)

    def _parameters(self, x: Array) -> Parts:
        split = partial(self.rotation.split, d=x.shape[1])
        return self.rotation.squash(self.angle_net.in_parts(x, split))

    def log_scales(self, x: Array) -> Array:
        """Those of Λ: rotations leave singular values alone."""
        return self.scales.log_scales(x)


class SharedRotation(Metric):
    """A = U, one for all points, from the free `outputs` (n_parameters,) of no network."""

    outputs: Array
    rotation: Rotation = eqx.field(static=True)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Uv; of a factored field only the frame's few columns are rotated."""
        (parameters,) = self.rotation.squash((self.outputs[None],))
        return v.mapped_by(lambda rows: rotate(self.rotation, parameters, rows))

    def log_scales(self, x: Array) -> Array:
        """Zeros."""
        return jnp.zeros_like(x)


class Composed(Metric):
    """A(x) = Λ(x)U with a rotation `first` and what acts `then`."""

    first: SharedRotation
    then: Metric

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λ(x)(Uv)."""
        return self.then.apply(x, self.first.apply(x, v))

    def log_scales(self, x: Array) -> Array:
        """Those of the second factor."""
        return self.then.log_scales(x)
