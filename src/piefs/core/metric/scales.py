"""The diagonal factor Λ: what keeps it from shrinking to nothing, a network's or all points' own.

The energy falls when every λ_i does, so their size must be fixed: `volume` is the paper's
det Λ = 1, `trace` is mean λ_i⁻² = 1, under which λ_i ≥ d^−½: no direction is ever free.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from piefs.core.gradients import DenseField, GradientField, Parts, gather
from piefs.core.metric.base import Metric
from piefs.core.networks import MLP

CONSTRAINTS = ("volume", "trace")


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


class Diag(Metric):
    """A(x) = Λ(x) with λ_i = exp(z_i − z̄), hence det Λ = 1 (eq:diagonal_constraint).

    `constraint` and `bound` are those of `constrained`.
    """

    block_rows: ClassVar[int | None] = 512
    scale_net: MLP
    constraint: str = eqx.field(static=True, default="volume")
    bound: float | None = eqx.field(static=True, default=None)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λ(x)v."""
        log_scales, vectors = self._log_scales(x, v.stride), v.parts(v.stride)
        pairs = zip(log_scales, vectors, strict=True)
        return DenseField(*(jnp.exp(z) * part for z, part in pairs))

    def log_scales(self, x: Array) -> Array:
        """The network's logits under the constraint."""
        return gather(self._log_scales(x, 1))

    def _log_scales(self, x: Array, stride: int) -> Parts:
        if self.constraint == "volume" and self.bound is None:
            # z is affine in the last layer: subtracting z̄ from it centres z without a pass over it.
            return self.scale_net.with_centred_outputs().dealt(x, stride)
        return constrained(self.scale_net.dealt(x, stride), self.constraint, self.bound)


class SharedDiag(Metric):
    """A = Λ, one for all points, from the free `logits` (d,). A factored gradient stays so."""

    logits: Array
    constraint: str = eqx.field(static=True, default="trace")
    bound: float | None = eqx.field(static=True, default=None)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Λv."""
        (log_scales,) = constrained((self.logits,), self.constraint, self.bound)
        return v.mapped_by(lambda rows: rows * jnp.exp(log_scales))

    def log_scales(self, x: Array) -> Array:
        """The same at every point."""
        (log_scales,) = constrained((self.logits,), self.constraint, self.bound)
        return jnp.broadcast_to(log_scales, x.shape)
