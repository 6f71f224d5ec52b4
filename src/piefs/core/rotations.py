"""Orthogonal factors U(x) of the metric: families of maps of determinant one.

A family turns parameters ω(x) into a rotation and applies it to vectors, without a d × d matrix. A
new one is a class with the methods of `Rotation`.
"""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import Parts, deal, gather


class Rotation(eqx.Module):
    """A family of orthogonal maps U(ω) of determinant one on ℝᵈ, applied without a d × d matrix.

    The components of vectors are dealt out into `stride` arrays; 1 leaves them together.
    """

    stride: ClassVar[int] = 1

    @abstractmethod
    def widths(self, d: int) -> tuple[int, ...]:
        """How many parameters each array has that `apply` takes, in dimension d."""

    @abstractmethod
    def apply(self, parameters: Parts, v: Parts, /) -> Parts:
        """U(ω)v row by row; one row of ω serves all."""

    def squash(self, outputs: Parts) -> Parts:
        """A network's outputs, any real numbers, as parameters; zeros give the identity."""
        return outputs

    def n_parameters(self, d: int) -> int:
        """How many parameters the family needs in dimension d."""
        return sum(self.widths(d))

    def split(self, parameters: Array, d: int) -> Parts:
        """Parameters, along the last axis, as the arrays that `apply` takes."""
        return tuple(jnp.split(parameters, np.cumsum(self.widths(d))[:-1], axis=-1))


def rotate(family: Rotation, parameters: Array, v: Array) -> Array:
    """U(ω)v for parameters of shape (n, n_parameters), or (1, …), and vectors of shape (n, d)."""
    parts = family.split(parameters, v.shape[1])
    return gather(family.apply(parts, deal(v, family.stride)))


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


# --- products of plane rotations ---------------------------------------------------------------


class Givens(Rotation):
    """What products of plane rotations share: parameters are angles."""

    def squash(self, outputs: Parts) -> Parts:
        """ω = π tanh(·), in [−π, π] (Sec. 2.4)."""
        return tuple(jnp.pi * jnp.tanh(part) for part in outputs)


class Trotter(Givens):
    """d − 1 adjacent-pair rotations fused into one even and one odd sweep.

    U(ω) = [Π_{j odd} R_j(ω_j)] [Π_{j even} R_j(ω_j)], R_j acting in the plane (j, j+1) ("even–odd
    sweeps with depth bounded independently of the nominal Givens count", Sec. 2.4).
    """

    stride: ClassVar[int] = 2  # a pair of a sweep then has one component in each array

    def widths(self, d: int) -> tuple[int, ...]:
        return d // 2, (d - 1) // 2

    def split(self, parameters: Array, d: int) -> Parts:
        """The angles of the even sweep and of the odd one, which alternate."""
        return deal(parameters, 2)

    def apply(self, omega: Parts, v: Parts) -> Parts:
        """The even pairs (v₀, v₁), (v₂, v₃), … first, then the odd ones (v₁, v₂), (v₃, v₄), …"""
        even, odd = _sweep(omega[0], *v)
        odd, moved = _sweep(omega[1], odd, jnp.roll(even, -1, axis=1))
        return jnp.roll(moved, 1, axis=1), odd


def _sweep(omega: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Rotate (a_i, b_i) by ω_i for every angle.

    Components without an angle or without a partner are rotated by zero, which changes nothing:
    arithmetic on whole arrays is what XLA turns into vector instructions.
    """
    n_a, n_b = a.shape[1], b.shape[1]
    left, right = rotate_pair(*(_padded(one, max(n_a, n_b)) for one in (omega, a, b)))
    return left[:, :n_a], right[:, :n_b]


def _padded(a: Array, width: int) -> Array:
    return jnp.pad(a, ((0, 0), (0, width - a.shape[1])))


class Chain(Givens):
    """The literal product U(ω) = R_{d−2}(ω_{d−2}) ⋯ R_1(ω_1) R_0(ω_0) of Sec. 2.4.

    Each rotation passes one carried coordinate on to the next, so the product is a scan over d.
    """

    def widths(self, d: int) -> tuple[int, ...]:
        return (d - 1,)

    def apply(self, omega: Parts, v: Parts) -> Parts:
        (angles,), (entries,) = omega, v
        angles = jnp.broadcast_to(angles, (len(entries), angles.shape[1]))

        def rotate(carried: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            angle, entry = inputs
            settled, carried = rotate_pair(angle, carried, entry)
            return carried, settled

        last, settled = jax.lax.scan(rotate, entries[:, 0], (angles.T, entries[:, 1:].T))
        return (jnp.concatenate([settled.T, last[:, None]], axis=1),)


class Butterfly(Givens):
    """⌈log₂ d⌉ layers, the s-th of which rotates the components i and i + 2ˢ: all meet all.

    That is the wiring of the fast Fourier transform. In a dimension that is no power of two, a
    component whose partner would lie beyond d is left alone. `depth` repeats the whole.
    """

    depth: int = eqx.field(static=True, default=1)

    def apply(self, omega: Parts, v: Parts) -> Parts:
        (entries,) = v
        n, d = entries.shape
        for angles, distance in zip(omega, self.depth * self._distances(d), strict=True):
            # Blocks of 2s components. Zeros fill the last one: a component without a partner meets
            # one at an angle of zero.
            n_blocks = -(-d // (2 * distance))
            pairs = _padded(entries, 2 * n_blocks * distance).reshape(n, n_blocks, 2, distance)
            turns = _padded(angles, n_blocks * distance).reshape(-1, n_blocks, distance)
            turned = jnp.stack(rotate_pair(turns, pairs[:, :, 0], pairs[:, :, 1]), axis=2)
            entries = turned.reshape(n, -1)[:, :d]
        return (entries,)

    def widths(self, d: int) -> tuple[int, ...]:
        pairs = (sum(not i & s for i in range(d - s)) for s in self._distances(d))
        return self.depth * tuple(pairs)

    def _distances(self, d: int) -> tuple[int, ...]:
        return tuple(1 << layer for layer in range((d - 1).bit_length()))


# --- few directions at once --------------------------------------------------------------------


class Cayley(Rotation):
    """U = (I − S/2)⁻¹(I + S/2) = I − W(½WᵀW + J)⁻¹Wᵀ, by the Woodbury identity.

    S = Σ_j (p_j q_jᵀ − q_j p_jᵀ) = W J Wᵀ is skew-symmetric, of rank 2r. W has the columns
    p_1, q_1, p_2, q_2, …, and J is block-diagonal with blocks (0 1; −1 0). `depth` is r, at most
    d/2. ½WᵀW + J is never singular: if it sends x to 0, then xᵀWᵀWx = 0, so Wx = 0 and Jx = 0.

    Parameters of zero are the identity: p starts at zero. S has no slope where q is zero too, so q
    starts at a fixed unit vector. Parameters are scaled by d^−½: a network's outputs of size one
    are then vectors of length one.
    """

    depth: int = eqx.field(static=True, default=1)

    def widths(self, d: int) -> tuple[int, ...]:
        return (d,) * (2 * min(self.depth, d // 2))

    def apply(self, parameters: Parts, v: Parts) -> Parts:
        (vectors,) = v
        (n, d), rank = vectors.shape, len(parameters)
        starts = np.zeros((rank, d))
        starts[1::2] = anchors(d, rank // 2)
        w = jnp.stack(parameters, axis=1) * d**-0.5
        w = w + jnp.asarray(starts, w.dtype)
        j = jnp.asarray(np.kron(np.eye(rank // 2), [[0, 1], [-1, 0]]), w.dtype)
        inner = -jnp.linalg.inv(0.5 * jnp.einsum("nid,njd->nij", w, w) + j)
        w, inner = (jnp.broadcast_to(a, (n, *a.shape[1:])) for a in (w, inner))
        shares = jnp.einsum("nij,nj->ni", inner, jnp.einsum("nid,nd->ni", w, vectors))
        return (vectors + jnp.einsum("ni,nid->nd", shares, w),)


def anchors(d: int, n: int) -> np.ndarray:
    """Orthonormal vectors c_1 … c_n in ℝᵈ, n < d: c_j(i) ∝ cos(πj(i + ½)/d)."""
    i, j = np.arange(d), 1 + np.arange(n)[:, None]
    waves = np.cos(np.pi * j * (i + 0.5) / d)
    return waves / np.linalg.norm(waves, axis=1, keepdims=True)


# --- by name -----------------------------------------------------------------------------------

FAMILIES: dict[str, type] = {
    "trotter": Trotter,
    "chain": Chain,
    "butterfly": Butterfly,
    "cayley": Cayley,
}


def make_rotation(name: str, depth: int | None = None) -> Rotation:
    """The family of that name, in its own size or in the one asked for."""
    return FAMILIES[name]() if depth is None else FAMILIES[name](depth=depth)
