"""The learnable metric A(x) = Λ(x)U(x) inside the Dirichlet energy (paper, Sec. 2.4).

A metric is a pytree with two methods (see `MetricField`); a function `(key, n_features) ->
MetricField` can stand wherever a metric's name does. The energy falls when every λ_i does, so the
size of Λ must be fixed: `volume` is the paper's det Λ = 1, `trace` is mean λ_i⁻² = 1, under which
λ_i ≥ d^−½: no direction is ever free.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import DenseField, GradientField, Parts, deal, gather
from piefs.core.networks import MLP, init_mlp
from piefs.core.rotations import Rotation, make_rotation, rotate


class MetricField(eqx.Module):
    """A field of linear maps A(x) acting on gradients.

    Energies of more than `block_rows` rows are summed in blocks that fit a core's cache.
    `follows_maps` says that the metric is not learned by descent but set from the maps' average
    gradient outer product, now and then (see `agop`).
    """

    block_rows: ClassVar[int | None] = None
    follows_maps: ClassVar[bool] = False

    @abstractmethod
    def apply(self, x: Array, v: GradientField) -> GradientField:
        """The field x ↦ A(x)v(x)."""

    @abstractmethod
    def log_scales(self, x: Array) -> Array:
        """The logarithms log λ_i(x) of the singular values of A(x), shape (n, d)."""


class Off(MetricField):
    """A = I: the plain Dirichlet energy. The gradient stays factored."""

    def apply(self, x: Array, v: GradientField) -> GradientField:
        return v

    def log_scales(self, x: Array) -> Array:
        return jnp.zeros_like(x)


# --- the diagonal factor -----------------------------------------------------------------------


def constrained(z: Parts, constraint: str, bound: float | None = None) -> Parts:
    """log λ from free logits z, dealt out into parts: shifted by what the constraint asks for.

    volume: z_i − mean z; trace: z_i + ½ log mean exp(−2z). With a `bound` b the logits are
    squashed to (b/2) tanh(2z/b) first. Both shifts lie between −max z and −min z, hence
    |log λ_i| < b, and λ_i/λ_j < e^b.
    """
    if bound is not None:
        z = tuple(0.5 * bound * jnp.tanh(part * (2 / bound)) for part in z)
    d = sum(part.shape[-1] for part in z)
    if constraint == "volume":
        shift = -sum(jnp.sum(part, axis=-1, keepdims=True) for part in z) / d
    else:
        sums = [jax.nn.logsumexp(-2 * part, axis=-1, keepdims=True) for part in z if part.size]
        shift = 0.5 * (jax.nn.logsumexp(jnp.stack(sums), axis=0) - jnp.log(d).astype(z[0].dtype))
    return tuple(part + shift for part in z)


class Diag(MetricField):
    """A(x) = Λ(x) with λ_i = exp(z_i − z̄), hence det Λ = 1 (eq:diagonal_constraint).

    `constraint` and `bound` are those of `constrained`.
    """

    block_rows: ClassVar[int | None] = 512
    scale_net: MLP
    constraint: str = eqx.field(static=True, default="volume")
    bound: float | None = eqx.field(static=True, default=None)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        pairs = zip(self._log_scales(x, v.stride), v.parts(v.stride), strict=True)
        return DenseField(*(jnp.exp(z) * part for z, part in pairs))

    def log_scales(self, x: Array) -> Array:
        return gather(self._log_scales(x, 1))

    def _log_scales(self, x: Array, stride: int) -> Parts:
        dealt = partial(deal, stride=stride)
        if self.constraint == "volume" and self.bound is None:
            # z is affine in the last layer: subtracting z̄ from it centres z without a pass over it.
            return self.scale_net.with_centred_outputs().in_parts(x, dealt)
        return constrained(self.scale_net.in_parts(x, dealt), self.constraint, self.bound)


class SharedDiag(MetricField):
    """A = Λ, one for all points, from the free `logits` (d,). A factored gradient stays so."""

    logits: Array
    constraint: str = eqx.field(static=True, default="trace")
    bound: float | None = eqx.field(static=True, default=None)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        return v.mapped_by(lambda rows: rows * jnp.exp(self._log_scales()))

    def log_scales(self, x: Array) -> Array:
        return jnp.broadcast_to(self._log_scales(), x.shape)

    def _log_scales(self) -> Array:
        return constrained((self.logits,), self.constraint, self.bound)[0]


# --- the orthogonal factor ---------------------------------------------------------------------


class RotatedDiag(MetricField):
    """A(x) = Λ(x)U(x): rotate first, scale afterwards (eq:amat_apply_order).

    In the other order the energy ‖UΛv‖² = ‖Λv‖² would not depend on U. `scales` is Λ(x) or a Λ
    shared by all points; `first`, where there is one, is a shared rotation that acts before U(x).
    """

    block_rows: ClassVar[int | None] = 512
    scales: MetricField
    angle_net: MLP
    rotation: Rotation = eqx.field(static=True)
    first: MetricField | None = None

    def apply(self, x: Array, v: GradientField) -> GradientField:
        v = v if self.first is None else self.first.apply(x, v)
        split = partial(self.rotation.split, d=x.shape[1])
        omega = self.rotation.squash(self.angle_net.in_parts(x, split))
        rotated = self.rotation.apply(omega, v.parts(self.rotation.stride))
        return self.scales.apply(x, DenseField(*rotated))

    def log_scales(self, x: Array) -> Array:
        return self.scales.log_scales(x)


class SharedRotation(MetricField):
    """A = U, one for all points, from the free `outputs` (n_parameters,) of no network."""

    outputs: Array
    rotation: Rotation = eqx.field(static=True)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Uv; of a factored field only the frame's few columns are rotated."""
        (parameters,) = self.rotation.squash((self.outputs[None],))
        return v.mapped_by(lambda rows: rotate(self.rotation, parameters, rows))

    def log_scales(self, x: Array) -> Array:
        return jnp.zeros_like(x)


class Composed(MetricField):
    """A(x) = Λ(x)U with a rotation `first` and what acts `then`."""

    first: SharedRotation
    then: MetricField

    def apply(self, x: Array, v: GradientField) -> GradientField:
        return self.then.apply(x, self.first.apply(x, v))

    def log_scales(self, x: Array) -> Array:
        return self.then.log_scales(x)


# --- by name -----------------------------------------------------------------------------------


def init_metric(
    metric: str | Callable[[Array, int], MetricField],
    random: np.random.Generator,
    n_features: int,
    hidden: Sequence[int] = (64, 64),
    dtype: Any = None,
    *,
    scope: str = "local",
    constraint: str = "volume",
    bound: float | None = None,
    depth: int | None = None,
) -> MetricField:
    """A fresh metric on `n_features` inputs, by name or from a user's function of key and number.

    Named metrics start as A(x) = I. On one feature either constraint leaves Λ = 1: all are `Off`.
    """
    if callable(metric):
        return metric(jax.random.key(random.integers(2**32)), n_features)
    if metric == "off" or n_features == 1:
        return Off()
    if metric == "agop":
        from piefs.core.agop import init_closed_form

        return init_closed_form(n_features, constraint, bound, dtype)

    def network(n_out: int) -> MLP:
        return init_mlp(random, (n_features, *hidden, n_out), "relu", dtype, output_scale=0.0)

    if scope in ("global", "global-scales"):
        scales: MetricField = SharedDiag(jnp.zeros(n_features, dtype), constraint, bound)
    else:
        scales = Diag(network(n_features), constraint, bound)
    if metric == "diag":
        return scales
    rotation = make_rotation(metric, depth)
    n_parameters = rotation.n_parameters(n_features)
    shared = SharedRotation(jnp.zeros(n_parameters, dtype), rotation)
    if scope in ("global", "global-rotation"):
        return Composed(shared, scales)
    first = shared if scope == "composed" else None
    return RotatedDiag(scales, network(n_parameters), rotation, first)
