"""The three losses of the paper (Sec. 2.1): Gram orthogonality, Dirichlet energy, readout.

Each is a function of sums over rows, which may be added up over devices first. An expectation is a
weighted average, Σ w f / Σ w, with weights of shape (n,), or None for equal ones. Labels such as
eq:loss_orth are those of the paper's source.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from piefs.core.gradients import GradientField, dot
from piefs.core.metric import MetricField
from piefs.core.model import Readout


class WeightedSum(NamedTuple):
    """Σ w f and Σ w over rows."""

    total: Array
    weight: ArrayLike

    @property
    def mean(self) -> Array:
        """E_p[f] ≈ Σ w f / Σ w; zero if no row has a weight."""
        return self.total / _off_zero(self.weight)


def weighted_sum(values: Array, weight: Array | None = None) -> WeightedSum:
    """The sums over the first axis."""
    if weight is None:
        return WeightedSum(jnp.sum(values, axis=0), len(values))
    return WeightedSum(jnp.tensordot(weight, values, axes=1), jnp.sum(weight))


def expectation(values: Array, weight: Array | None = None) -> Array:
    """E_p[f] ≈ Σ w_i f(x_i) / Σ w_i over the first axis."""
    return weighted_sum(values, weight).mean


def _off_zero(total: ArrayLike) -> Array:
    return jnp.maximum(total, jnp.finfo(jnp.float32).tiny)


# --- orthogonality -----------------------------------------------------------------------------


def gram_sum(phi: Array, weight: Array | None = None) -> WeightedSum:
    """Σ w φφᵀ and Σ w: (n, K) → (K, K)."""
    if weight is None:
        return WeightedSum(phi.T @ phi, len(phi))
    return WeightedSum(phi.T @ (weight[:, None] * phi), jnp.sum(weight))


def gram(phi: Array, weight: Array | None = None) -> Array:
    """Ĉ = (1/B) ΦᵀΦ, the batch estimate of E_p[φφᵀ] (remark:batch_gram): (n, K) → (K, K)."""
    return gram_sum(phi, weight).mean


def active_identity(n_components: int, k: int | Array) -> Array:
    """I_k in the corner of K × K zeros; k may be traced, so that one compilation serves all k."""
    return jnp.diag((jnp.arange(n_components) < k).astype(float))


def gram_error(c: Array, k: int | Array | None = None) -> Array:
    """‖C_k − I_k‖²_F (eq:loss_orth) of a Gram matrix whose inactive rows and columns are zero."""
    identity = active_identity(c.shape[0], c.shape[0] if k is None else k)
    return jnp.sum((c - identity.astype(c.dtype)) ** 2)


def unbiased_gram_error(phi: Array) -> Array:
    """An unbiased estimate of ‖E[φφᵀ] − I‖²_F from n equally weighted samples; may be negative.

    The plug-in ‖Ĉ − I‖² is too large by the sampling variance of Ĉ, O(1/n) (remark:batch_gram). The
    average of ⟨φ_iφ_iᵀ − I, φ_jφ_jᵀ − I⟩ over pairs of *different* samples is not: it is
    [n²‖Ĉ − I‖² − Σ_i (|φ_i|⁴ − 2|φ_i|² + K)] / (n(n − 1)).
    """
    n, n_components = phi.shape
    squares = jnp.sum(phi**2, axis=1)
    own = jnp.sum(squares**2 - 2 * squares + n_components)
    return (n * gram_error(gram(phi)) - own / n) / (n - 1)  # n² would overflow 32-bit integers


class HalfSums(NamedTuple):
    """Sums over the two halves of a batch, of φφᵀ or of its row k.

    products: (2, K, K) or (2, K), Σ w φφᵀ of either half; squares: Σ w |φφᵀ|² over both, summed
    over entries, or (K,); weights: (2,), Σ w of either half; square_weights: Σ w² over both.
    """

    products: Array
    squares: Array
    weights: Array
    square_weights: Array

    @property
    def means(self) -> Array:
        """The averages over either half."""
        shape = (2,) + (1,) * (self.products.ndim - 1)
        return self.products / _off_zero(self.weights).reshape(shape)

    def correction(self, n_rows: ArrayLike) -> Array:
        """S²/n, S² the variance of φφᵀ, estimated with m = (Σ w)²/Σ w² rows: times m/(m − 1)."""
        total = _off_zero(jnp.sum(self.weights))
        mean_square = (jnp.sum(self.products, axis=0) / total) ** 2
        mean_square = jnp.sum(mean_square) if self.squares.ndim == 0 else mean_square
        n_effective = total**2 / _off_zero(self.square_weights)
        unbiasing = 1 + 1 / jnp.maximum(n_effective - 1, 1)
        return (self.squares / total - mean_square) * unbiasing / n_rows


def half_sums(phi: Array, weight: Array) -> HalfSums:
    """The sums that `split_gram_error` is a function of."""
    products = [part.T @ (w[:, None] * part) for part, w in _halves(phi, weight)]
    fourth_powers = jnp.sum(phi**2, axis=1) ** 2
    return HalfSums(jnp.stack(products), weight @ fourth_powers, *_weights(weight))


def row_half_sums(phi: Array, weight: Array, k: int | Array) -> HalfSums:
    """The sums that `split_row_error` is a function of."""
    entries = phi * phi[:, k, None]
    products = [w @ part for part, w in _halves(entries, weight)]
    return HalfSums(jnp.stack(products), weight @ entries**2, *_weights(weight))


def _halves(rows: Array, weight: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    half = rows.shape[0] // 2
    return (rows[:half], weight[:half]), (rows[half:], weight[half:])


def _weights(weight: Array) -> tuple[Array, Array]:
    return jnp.stack([jnp.sum(w) for _, w in _halves(weight, weight)]), jnp.sum(weight**2)


def split_gram_error(sums: HalfSums, n_rows: ArrayLike = jnp.inf) -> Array:
    """⟨Ĉ₁ − I, Ĉ₂ − I⟩ of a batch's two halves: unbiased for ‖E[φφᵀ] − I‖²_F; may be negative.

    The halves are independent, so their sampling noise averages out. Those of a batch drawn from
    only `n_rows` are not: no row is in both, and a map would gain from a peak on a single row.
    Adding S²/n, S² the variance of φφᵀ, makes the estimate unbiased for these n rows.
    """
    first, second = sums.means - jnp.eye(sums.products.shape[-1], dtype=sums.products.dtype)
    return jnp.sum(first * second) + sums.correction(n_rows)


def split_row_error(sums: HalfSums, k: int | Array, n_rows: ArrayLike = jnp.inf) -> Array:
    """What map k (counted from 0) adds to the Gram error, from two halves as in `split_gram_error`.

    With the maps before it frozen that is 2 Σ_{j<k} c_jk² + (c_kk − 1)²; columns after k are zero.
    """
    first, second = sums.means - (jnp.arange(sums.products.shape[-1]) == k)
    errors = first * second + sums.correction(n_rows)
    return 2 * jnp.sum(errors) - errors[k]


# --- smoothness --------------------------------------------------------------------------------


def dirichlet_form(f: GradientField, g: GradientField, weight: Array | None = None) -> Array:
    """⟨f, g⟩_de = ∫ ∇f · ∇g p dx (eq:bilinear_form_1_original), from the gradients of f and g."""
    return expectation(dot(f, g), weight)


def modified_dirichlet_form(
    metric: MetricField, x: Array, f: GradientField, g: GradientField, weight: Array | None = None
) -> Array:
    """⟨f, g⟩_mde = ∫ (A∇f)ᵀ(A∇g) p dx (eq:bilinear_form_1); L_mde is ⟨f, f⟩_mde (eq:loss_mde)."""
    return dirichlet_form(metric.apply(x, f), metric.apply(x, g), weight)


def squared_log_scales(log_scales: Array) -> Array:
    """mean_i (log λ_i)² of each row, whose average is penalised in App. C: (n, d) → (n,)."""
    return jnp.mean(log_scales**2, axis=-1)


# --- readout -----------------------------------------------------------------------------------

ReadoutLoss = Callable[[Array, Array], Array]
"""The loss of each row, (n,), from the readout's outputs (n, n_outputs) and the targets."""


def init_readout(n_outputs: int, n_components: int, dtype: Any = None) -> Readout:
    """A readout of zeros: every class equally likely. The problem in (W, B) is convex."""
    dtype = dtype or float
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
