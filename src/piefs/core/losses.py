"""The losses of the paper (Sec. 2.1) as functions of sums over rows: Gram orthogonality, readout.

The sums may be added up over devices first. An expectation is a weighted average, Σ w f / Σ w.
Energies are in `gradients`. Labels such as eq:loss_orth are those of the paper's source.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from piefs.core.model import Readout


class WeightedSum(NamedTuple):
    """Σ w f and Σ w over rows."""

    total: Array
    weight: ArrayLike

    @property
    def mean(self) -> Array:
        """E_p[f] ≈ Σ w f / Σ w; zero if no row has a weight."""
        return self.total / _off_zero(self.weight)


def weighted_sum(values: Array, weight: Array) -> WeightedSum:
    """The sums over the first axis."""
    return WeightedSum(jnp.tensordot(weight, values, axes=1), jnp.sum(weight))


def _off_zero(total: ArrayLike) -> Array:
    return jnp.maximum(total, jnp.finfo(jnp.float32).tiny)


# --- orthogonality -----------------------------------------------------------------------------


def gram_sum(phi: Array, weight: Array) -> WeightedSum:
    """Σ w φφᵀ, (n, K) → (K, K), and Σ w: their mean is Ĉ (remark:batch_gram)."""
    return WeightedSum(phi.T @ (weight[:, None] * phi), jnp.sum(weight))


def gram_error(c: Array, k: int | Array | None = None) -> Array:
    """‖C_k − I_k‖²_F (eq:loss_orth) of a Gram matrix whose inactive rows and columns are zero.

    k may be traced, so that one compilation serves all k.
    """
    active = jnp.arange(len(c)) < (len(c) if k is None else k)
    return jnp.sum((c - jnp.diag(active.astype(c.dtype))) ** 2)


class HalfSums(NamedTuple):
    """Sums over the two halves of a batch, of the deviations E = φφᵀ − I or of what map k adds.

    deviations: Σ w E of either half, (2, …); squares: Σ w |E|² over both; weights: (2,), Σ w of
    either half; square_weights: Σ w² over both.
    """

    deviations: Array
    squares: Array
    weights: Array
    square_weights: Array


def half_sums(phi: Array, weight: Array) -> HalfSums:
    """The sums for all maps: (n, K) → deviations (2, K, K)."""
    n_components = phi.shape[1]
    identity = jnp.eye(n_components, dtype=phi.dtype)
    lengths = jnp.sum(phi**2, axis=1)
    return _half_sums(
        lambda phi, w: phi.T @ (w[:, None] * phi) - jnp.sum(w) * identity,
        phi,
        weight,
        lengths**2 - 2 * lengths + n_components,
    )


def row_half_sums(phi: Array, weight: Array, k: int | Array) -> HalfSums:
    """The sums for what map k (counted from 0) adds to the Gram error: deviations (2, K).

    With the maps before it frozen that is 2 Σ_{j<k} c_jk² + (c_kk − 1)²; columns after k are zero.
    """
    own = (jnp.arange(phi.shape[1]) == k).astype(phi.dtype)
    row = (phi * phi[:, k, None] - own) * jnp.sqrt(2 - own)
    return _half_sums(lambda row, w: w @ row, row, weight, jnp.sum(row**2, axis=1))


def _half_sums(
    total: Callable[[Array, Array], Array], rows: Array, weight: Array, squares: Array
) -> HalfSums:
    half = len(rows) // 2
    halves = (rows[:half], weight[:half]), (rows[half:], weight[half:])
    deviations = jnp.stack([total(*part) for part in halves])
    weights = jnp.stack([jnp.sum(w) for _, w in halves])
    return HalfSums(deviations, weight @ squares, weights, jnp.sum(weight**2))


def split_gram_error(sums: HalfSums, n_rows: ArrayLike = jnp.inf) -> Array:
    """⟨Ē₁, Ē₂⟩ of a batch's two halves: unbiased for ‖E[φφᵀ] − I‖²_F; may be negative.

    The halves are independent, so their sampling noise averages out. Those of a batch drawn from
    only `n_rows` are not: no row is in both, and a map would gain from a peak on a single row.
    Adding S²/n makes the estimate unbiased for these n rows. S² is the variance of E, estimated
    with m = (Σ w)²/Σ w² rows: hence the factor m/(m − 1).
    """
    shape = (2,) + (1,) * (sums.deviations.ndim - 1)
    first, second = sums.deviations / _off_zero(sums.weights).reshape(shape)
    total = _off_zero(jnp.sum(sums.weights))
    variance = sums.squares / total - jnp.sum((jnp.sum(sums.deviations, axis=0) / total) ** 2)
    n_effective = total**2 / _off_zero(sums.square_weights)
    unbiasing = 1 + 1 / jnp.maximum(n_effective - 1, 1)
    return jnp.sum(first * second) + variance * unbiasing / n_rows


# --- readout -----------------------------------------------------------------------------------

ReadoutLoss = Callable[[Array, Array], Array]
"""The loss of each row, (n,), from the readout's outputs (n, n_outputs) and the targets."""


def init_readout(n_outputs: int, n_components: int, dtype: Any = None) -> Readout:
    """A readout of zeros: every class equally likely. The problem in (W, B) is convex."""
    return Readout(jnp.zeros((n_outputs, n_components), dtype), jnp.zeros((n_outputs,), dtype))


def squared_error(outputs: Array, targets: Array) -> Array:
    """|outputs − targets|² of each row, the mean over outputs; targets are (n, n_outputs)."""
    return jnp.mean((outputs - targets) ** 2, axis=-1)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """−log p(l|x) of each row with p = softmax(logits), whose average is L_class.

    Labels are class indices, shape (n,); those of rows of weight zero may be any number.
    """
    log_p = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.take_along_axis(log_p, labels[:, None], axis=1, mode="clip")[:, 0]
