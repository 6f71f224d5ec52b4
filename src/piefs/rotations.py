"""Orthogonal factors U(x) of the metric, each a product of plane (Givens) rotations.

A rotation family turns angles ω(x) into an orthogonal map of determinant one, and applies it to
vectors without ever forming a d × d matrix. It says by its `stride` how it wants components and
angles dealt out (see `gradients.deal`): neighbours that are rotated against each other then lie in
different arrays, at the same place. A new family is a class with the members of `Rotation`,
registered in `ROTATIONS` or passed as an object.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from piefs.gradients import Parts, deal, gather


@runtime_checkable
class Rotation(Protocol):
    """What a family of orthogonal maps must provide."""

    @property
    def stride(self) -> int:
        """Into how many arrays components and angles are dealt out; 1 leaves them together."""
        ...

    def n_angles(self, d: int) -> int:
        """How many angles the family needs in dimension d."""
        ...

    def apply(self, omega: Parts, v: Parts) -> Parts:
        """U(ω)v row by row, angles and vectors dealt out into `stride` arrays."""
        ...


def rotate(family: Rotation, omega: Array, v: Array) -> Array:
    """U(ω)v for angles of shape (n, n_angles(d)) and vectors of shape (n, d)."""
    return gather(family.apply(deal(omega, family.stride), deal(v, family.stride)))


# --- one plane ---------------------------------------------------------------------------------

# Chebyshev fits in t² of sin(πt/2)/t and cos(πt/2)/(1 − t²) for |t| ≤ 1, good to 7e-9 and 9e-10.
_HALF_SINE = (1.57079632, -0.6459637604, 0.0796899226, -0.004674150669, 0.0001516751178)
_HALF_COSINE = (0.9999999991, -0.2337005064, 0.0199686067, -0.0008935362901, 2.360108567e-05)


@jax.custom_jvp
def cos_sin(omega: Array) -> tuple[Array, Array]:
    """(cos ω, sin ω), in float32 several times faster than XLA's own on a CPU.

    Polynomials give the cosine and sine of half the angle, the doubling formulas the rest; one
    Newton step keeps cos² + sin² = 1 to rounding, hence U orthogonal.
    """
    if omega.dtype != jnp.float32:
        return jnp.cos(omega), jnp.sin(omega)
    t = omega * (1 / jnp.pi)
    t = t - 2 * jnp.round(t / 2)
    square = t * t
    half_sine = t * _polynomial(_HALF_SINE, square)
    half_cosine = (1 - square) * _polynomial(_HALF_COSINE, square)
    c, s = 1 - 2 * half_sine * half_sine, 2 * half_sine * half_cosine
    unit = 1.5 - 0.5 * (c * c + s * s)
    return c * unit, s * unit


@cos_sin.defjvp
def _cos_sin_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple:
    (omega,), (change,) = primals, tangents
    c, s = cos_sin(omega)
    return (c, s), (-s * change, c * change)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Σ c_i xⁱ by Horner's rule."""
    result = jnp.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def rotate_pair(omega: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The plane rotation R(ω)(a, b)ᵀ = (a cos ω − b sin ω, a sin ω + b cos ω)ᵀ."""
    c, s = cos_sin(omega)
    return a * c - b * s, a * s + b * c


# --- products of them --------------------------------------------------------------------------


class Trotter(eqx.Module):
    """d − 1 adjacent-pair rotations fused into one even and one odd sweep.

    U(ω) = [Π_{j odd} R_j(ω_j)] [Π_{j even} R_j(ω_j)], R_j acting in the plane (j, j+1) ("even–odd
    sweeps with depth bounded independently of the nominal Givens count", Sec. 2.4).
    """

    @property
    def stride(self) -> int:
        """Even and odd components apart: a pair of a sweep then has one in each array."""
        return 2

    def n_angles(self, d: int) -> int:
        """One for each adjacent pair: d − 1."""
        return d - 1

    def apply(self, omega: Parts, v: Parts) -> Parts:
        """The even pairs (v₀, v₁), (v₂, v₃), … first, then the odd ones (v₁, v₂), (v₃, v₄), …"""
        even, odd = v
        even, odd = _sweep(omega[0], even, odd)
        odd, rest = _sweep(omega[1], odd, even[:, 1:])
        return jnp.concatenate([even[:, :1], rest], axis=1), odd


def _sweep(omega: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Rotate (a_i, b_i) by ω_i for every angle; components without an angle stay as they are."""
    n_pairs = omega.shape[1]
    left, right = rotate_pair(omega, a[:, :n_pairs], b[:, :n_pairs])
    return _completed(left, a), _completed(right, b)


def _completed(rotated: Array, original: Array) -> Array:
    """The rotated components, followed by those that had no partner."""
    n_rotated = rotated.shape[1]
    if n_rotated == original.shape[1]:
        return rotated
    return jnp.concatenate([rotated, original[:, n_rotated:]], axis=1)


class Chain(eqx.Module):
    """The literal product U(ω) = R_{d−2}(ω_{d−2}) ⋯ R_1(ω_1) R_0(ω_0) of Sec. 2.4.

    Each rotation passes one carried coordinate on to the next, so the product is a scan over d.
    """

    @property
    def stride(self) -> int:
        """All components together."""
        return 1

    def n_angles(self, d: int) -> int:
        """One for each adjacent pair: d − 1."""
        return d - 1

    def apply(self, omega: Parts, v: Parts) -> Parts:
        """R_0 acts first, R_{d−2} last."""
        (angles,), (entries,) = omega, v

        def rotate(carried: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            angle, entry = inputs
            settled, carried = rotate_pair(angle, carried, entry)
            return carried, settled

        last, settled = jax.lax.scan(rotate, entries[:, 0], (angles.T, entries[:, 1:].T))
        return (jnp.concatenate([settled.T, last[:, None]], axis=1),)


ROTATIONS: dict[str, Rotation] = {"trotter": Trotter(), "chain": Chain()}
