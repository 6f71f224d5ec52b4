"""Orthogonal factors U(x) of the metric: families of maps of determinant one.

A family turns parameters ω(x) into a rotation and applies it to vectors. A new one is a class with
the methods of `Rotation`, registered in `FAMILIES` or passed as an object. All but `dense` never
form a d × d matrix. Products of plane rotations are in `givens`; those here move a few directions.

Their parameters are vectors, and zeros must be the identity without being stuck there:
S = pqᵀ − qpᵀ has no slope at p = q = 0. So each vector q starts at a fixed unit vector c (a cosine
of its own frequency, hence orthogonal to the others) and p at zero. Parameters are scaled by d^−½,
so that a network's outputs of size one are vectors of length one.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.givens import Brickwall, Butterfly, Chain, Givens, Rotation, Trotter
from piefs.core.gradients import Parts, deal, gather


def rotate(family: Rotation, parameters: Array, v: Array) -> Array:
    """U(ω)v for parameters of shape (n, n_parameters), or (1, …), and vectors of shape (n, d)."""
    parts = family.split(parameters, v.shape[1])
    return gather(family.apply(parts, deal(v, family.stride)))


# --- reflections, Cayley transforms and exponentials -------------------------------------------


def anchors(d: int, n: int) -> np.ndarray:
    """Unit vectors c_1 … c_n in ℝᵈ, c_j(i) ∝ cos(πj(i + ½)/d): orthonormal, repeated from n = d."""
    i, j = np.arange(d), 1 + np.arange(n)[:, None] % (d - 1)
    waves = np.cos(np.pi * j * (i + 0.5) / d)
    return waves / np.linalg.norm(waves, axis=1, keepdims=True)


class Householder(Rotation):
    """A product of an even number of reflections, H(w) = I − 2wwᵀ/wᵀw.

    Each pair H(c + p)H(c + q) shares its anchor c, and is the identity at p = q = 0.
    """

    depth: int = eqx.field(static=True, default=2)

    def widths(self, d: int) -> tuple[int, ...]:
        return (d,) * self.depth

    def apply(self, parameters: Parts, v: Parts) -> Parts:
        """The last reflection acts first."""
        (vectors,) = v
        d = vectors.shape[1]
        pairs = zip(parameters[::2], parameters[1::2], strict=True)
        for c, (p, q) in zip(anchors(d, self.depth // 2), pairs, strict=True):
            for w in (_anchored(q, c, d), _anchored(p, c, d)):
                vectors = _reflect(w, jnp.asarray(c, vectors.dtype), vectors)
        return (vectors,)


def _anchored(p: Array, c: np.ndarray | float, d: int) -> Array:
    return jnp.asarray(c, p.dtype) + p * d**-0.5


def _reflect(w: Array, otherwise: Array, v: Array) -> Array:
    """H(w)v; where w vanishes there is no mirror, and the one of `otherwise` serves."""
    square = jnp.sum(w * w, axis=1, keepdims=True)
    vanishes = square < 1e-12
    w, square = jnp.where(vanishes, otherwise, w), jnp.where(vanishes, 1.0, square)
    return v - (2 * jnp.sum(w * v, axis=1, keepdims=True) / square) * w


class _LowRank(Rotation):
    """A function of the skew-symmetric S = Σ_j (p_j q_jᵀ − q_j p_jᵀ) = W J Wᵀ, of rank 2r.

    W has the columns p_1, q_1, p_2, q_2, …, and J is block-diagonal with blocks (0 1; −1 0).
    `depth` is r, at most d/2. U = I + W F Wᵀ with a 2r × 2r matrix F of G = WᵀW.
    """

    depth: int = eqx.field(static=True, default=1)

    @abstractmethod
    def _inner(self, gram: Array, j: Array) -> Array:
        """F, (n, 2r, 2r), from G at each point and J."""

    def widths(self, d: int) -> tuple[int, ...]:
        return (d,) * (2 * min(self.depth, max(1, d // 2)))

    def _columns(self, parameters: Parts, d: int) -> Array:
        """The columns of W, (n, 2r, d): p from zero, q from its anchor."""
        fixed = [c for anchor in anchors(d, len(parameters) // 2) for c in (0.0, anchor)]
        columns = (_anchored(p, c, d) for p, c in zip(parameters, fixed, strict=True))
        return jnp.stack(list(columns), axis=1)

    def apply(self, parameters: Parts, v: Parts) -> Parts:
        (vectors,) = v
        w = self._columns(parameters, vectors.shape[1])
        j = jnp.asarray(np.kron(np.eye(w.shape[1] // 2), [[0, 1], [-1, 0]]), w.dtype)
        inner = self._inner(jnp.einsum("nid,njd->nij", w, w), j)
        w, inner = (jnp.broadcast_to(a, (len(vectors), *a.shape[1:])) for a in (w, inner))
        shares = jnp.einsum("nij,nj->ni", inner, jnp.einsum("nid,nd->ni", w, vectors))
        return (vectors + jnp.einsum("ni,nid->nd", shares, w),)


class Cayley(_LowRank):
    """U = (I − S/2)⁻¹(I + S/2) = I − W(½WᵀW + J)⁻¹Wᵀ, by the Woodbury identity.

    ½WᵀW + J is never singular: where it sends x to 0 also xᵀWᵀWx = 0, so Wx = 0 and Jx = 0.
    """

    def _inner(self, gram: Array, j: Array) -> Array:
        return -jnp.linalg.inv(0.5 * gram + j)


LONGEST = float(np.pi)  # of the squared length of a column of W: one pair turns by up to π


class Exponential(_LowRank):
    """U = exp(S) = I + W J φ₁(WᵀW J) Wᵀ with φ₁(X) = Σ Xⁿ/(n + 1)!.

    Columns are shortened smoothly to |w|² < π, so one scaling of the series serves all parameters.
    """

    def _columns(self, parameters: Parts, d: int) -> Array:
        w = super()._columns(parameters, d)
        return w * jnp.sqrt(LONGEST / (LONGEST + jnp.sum(w * w, axis=-1, keepdims=True)))

    def _inner(self, gram: Array, j: Array) -> Array:
        return j @ _phi_1(gram @ j)


def _phi_1(x: Array) -> Array:
    """φ₁(X) by its series at X/2ˢ and s doublings, φ₁(2X) = φ₁(X)(I + ½Xφ₁(X))."""
    size, n_terms = x.shape[-1], 9 if x.dtype == jnp.float32 else 16
    n_doublings = int(np.ceil(np.log2(2 * size * LONGEST)))
    identity = jnp.eye(size, dtype=x.dtype)
    x = x / 2**n_doublings
    result = jnp.broadcast_to(identity / (n_terms + 1), x.shape)
    for n in range(n_terms, 0, -1):
        result = (identity + x @ result) / n
    for _ in range(n_doublings):
        result = result @ (identity + 0.5 * x @ result)
        x = 2 * x
    return result


class Dense(Givens):
    """U = exp(S) with a full skew-symmetric S: every rotation there is, for small dimensions.

    It takes d(d − 1)/2 parameters and a d × d matrix for each point.
    """

    def widths(self, d: int) -> tuple[int, ...]:
        """The entries of S above its diagonal, row by row: turns in their planes."""
        return (d * (d - 1) // 2,)

    def apply(self, parameters: Parts, v: Parts) -> Parts:
        (entries,), (vectors,) = parameters, v
        d = vectors.shape[1]
        rows, columns = np.triu_indices(d, 1)
        upper = jnp.zeros((len(entries), d, d), entries.dtype).at[:, rows, columns].set(entries)
        matrices = jax.scipy.linalg.expm(upper - upper.transpose(0, 2, 1))
        matrices = jnp.broadcast_to(matrices, (len(vectors), d, d))
        return (jnp.einsum("nij,nj->ni", matrices, vectors),)


# --- by name -----------------------------------------------------------------------------------

FAMILIES: dict[str, type] = {
    "trotter": Trotter,
    "chain": Chain,
    "brickwall": Brickwall,
    "butterfly": Butterfly,
    "householder": Householder,
    "cayley": Cayley,
    "exponential": Exponential,
    "dense": Dense,
}
ROTATIONS: dict[str, Rotation] = {name: family() for name, family in FAMILIES.items()}


def make_rotation(name: str, depth: int | None = None) -> Rotation:
    """The family of that name, in its own size or in the one asked for."""
    return ROTATIONS[name] if depth is None else FAMILIES[name](depth=depth)
