"""Orthogonal factors U(x) of the metric, each a product of plane (Givens) rotations.

A rotation family turns angles ω(x) of shape (n, n_angles(d)) into an orthogonal map of determinant
one, and applies it to vectors v of shape (n, d) without ever forming a d × d matrix. A new family
is a class with the two methods of `Rotation`, registered in `ROTATIONS` or passed as an object.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


@runtime_checkable
class Rotation(Protocol):
    """What a family of orthogonal maps must provide."""

    def n_angles(self, d: int) -> int:
        """How many angles the family needs in dimension d."""
        ...

    def apply(self, omega: Array, v: Array) -> Array:
        """U(ω)v row by row: angles (n, n_angles(d)), vectors (n, d) → (n, d)."""
        ...


def rotate_pair(omega: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The plane rotation R(ω)(a, b)ᵀ = (a cos ω − b sin ω, a sin ω + b cos ω)ᵀ."""
    c, s = jnp.cos(omega), jnp.sin(omega)
    return a * c - b * s, a * s + b * c


def _interleave(a: Array, b: Array) -> Array:
    """(a₀, b₀, a₁, b₁, …); `a` may be one column longer than `b`."""
    out = jnp.zeros((a.shape[0], a.shape[1] + b.shape[1]), a.dtype)
    return out.at[:, 0::2].set(a).at[:, 1::2].set(b)


def _sweep(omega: Array, v: Array) -> Array:
    """Rotate the disjoint pairs (0,1), (2,3), … of v by the angles ω, one for each pair."""
    n_pairs = v.shape[1] // 2
    a, b = rotate_pair(omega, v[:, 0 : 2 * n_pairs : 2], v[:, 1 : 2 * n_pairs : 2])
    return jnp.concatenate([_interleave(a, b), v[:, 2 * n_pairs :]], axis=1)


class Trotter(eqx.Module):
    """d − 1 adjacent-pair rotations fused into one even and one odd sweep.

    U(ω) = [Π_{j odd} R_j(ω_j)] [Π_{j even} R_j(ω_j)], R_j acting in the plane (j, j+1) ("even–odd
    sweeps with depth bounded independently of the nominal Givens count", Sec. 2.4).
    """

    def n_angles(self, d: int) -> int:
        """One for each adjacent pair: d − 1."""
        return d - 1

    def apply(self, omega: Array, v: Array) -> Array:
        """The even pairs first, then the odd ones."""
        v = _sweep(omega[:, 0::2], v)
        return jnp.concatenate([v[:, :1], _sweep(omega[:, 1::2], v[:, 1:])], axis=1)


class Chain(eqx.Module):
    """The literal product U(ω) = R_{d−2}(ω_{d−2}) ⋯ R_1(ω_1) R_0(ω_0) of Sec. 2.4.

    Each rotation passes one carried coordinate on to the next, so the product is a scan over d.
    """

    def n_angles(self, d: int) -> int:
        """One for each adjacent pair: d − 1."""
        return d - 1

    def apply(self, omega: Array, v: Array) -> Array:
        """R_0 acts first, R_{d−2} last."""

        def rotate(carried: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            angle, entry = inputs
            settled, carried = rotate_pair(angle, carried, entry)
            return carried, settled

        last, settled = jax.lax.scan(rotate, v[:, 0], (omega.T, v[:, 1:].T))
        return jnp.concatenate([settled.T, last[:, None]], axis=1)


ROTATIONS: dict[str, Rotation] = {"trotter": Trotter(), "chain": Chain()}
