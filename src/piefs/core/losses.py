"""The three losses of the paper (Sec. 2.1): Gram orthogonality, Dirichlet energy, readout.

Every expectation under p is a weighted batch average: `weight` has shape (n,) and need not be
normalised; None means equal weights. Where a batch is spread over devices, sums over its rows are
sums over all of them. Labels such as eq:loss_orth are those of the paper's source.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from piefs.core.gradients import GradientField, dot
from piefs.core.metric import Metric
from piefs.training.sharding import mean_over_devices, over_devices


def expectation(values: Array, weight: Array | None = None) -> Array:
    """E_p[f] ≈ Σ w_i f(x_i) / Σ w_i over the first axis."""
    if weight is None:
        return mean_over_devices(jnp.mean(values, axis=0))
    return over_devices(jnp.tensordot(weight, values, axes=1)) / total_weight(weight)


def total_weight(weight: Array) -> Array:
    """Σ w_i, kept off zero: a batch of rows that do not count costs nothing."""
    return _off_zero(over_devices(jnp.sum(weight)))


def _off_zero(total: Array) -> Array:
    return jnp.maximum(total, jnp.finfo(jnp.float32).tiny)


# --- orthogonality -----------------------------------------------------------------------------


def gram(phi: Array, weight: Array | None = None) -> Array:
    """Ĉ = (1/B) ΦᵀΦ, the batch estimate of E_p[φφᵀ] (remark:batch_gram): (n, K) → (K, K)."""
    if weight is None:
        return mean_over_devices(phi.T @ phi / phi.shape[0])
    return over_devices(phi.T @ (weight[:, None] * phi)) / total_weight(weight)


def active_identity(n_components: int, k: int | Array) -> Array:
    """I_k in the leading corner of a K × K matrix of zeros; `k` counts active maps, may be traced.

    With it, the k × k block of the paper is a fixed K × K shape, so that one compilation serves
    all k.
    """
    return jnp.diag((jnp.arange(n_components) < k).astype(float))


def gram_error(c: Array, k: int | Array | None = None) -> Array:
    """‖C_k − I_k‖²_F (eq:loss_orth) of a Gram matrix whose inactive rows and columns are zero."""
    identity = active_identity(c.shape[0], c.shape[0] if k is None else k)
    return jnp.sum((c - identity.astype(c.dtype)) ** 2)


def unbiased_gram_error(phi: Array) -> Array:
    """An unbiased estimate of ‖E[φφᵀ] − I‖²_F from n equally weighted samples; may be negative.

    The plug-in ‖Ĉ − I‖² is too large by the sampling variance of Ĉ, O(1/n) (remark:batch_gram). The
    average over pairs of *different* samples, of ⟨φ_iφ_iᵀ − I, φ_jφ_jᵀ − I⟩, is not: it is
    [n²‖Ĉ − I‖² − Σ_i (|φ_i|⁴ − 2|φ_i|² + K)] / (n(n − 1)).
    """
    n, n_components = phi.shape
    squares = jnp.sum(phi**2, axis=1)
    own = jnp.sum(squares**2 - 2 * squares + n_components)
    return (n * gram_error(gram(phi)) - own / n) / (n - 1)  # n² would overflow 32-bit integers


def split_gram_error(phi: Array, weight: Array, n_rows: ArrayLike = jnp.inf) -> Array:
    """⟨Ĉ₁ − I, Ĉ₂ − I⟩ of a batch's two halves: unbiased for ‖E[φφᵀ] − I‖²_F; may be negative.

    The halves are independent, so their sampling noise averages out, and a small batch is pushed
    towards the population's Gram matrix instead of its own.

    Where a batch is drawn from only `n_rows`, its halves are not independent: what one has the
    other lacks, and a map that peaks on a single row would be the better the higher the peak. The
    S²/n added for that, S² the variance of φφᵀ, makes it unbiased for the Gram matrix of these n.
    """
    half = phi.shape[0] // 2
    identity = jnp.eye(phi.shape[1], dtype=phi.dtype)
    halves = (phi[:half], weight[:half]), (phi[half:], weight[half:])
    # Four sums over devices: each is a message, and messages are what many devices wait for.
    first, second = (over_devices(part.T @ (w[:, None] * part)) for part, w in halves)
    totals = _off_zero(over_devices(jnp.stack([jnp.sum(w) for _, w in halves])))
    fourth_powers = jnp.sum(phi**2, axis=1) ** 2
    fourth, squares = over_devices(jnp.stack([weight @ fourth_powers, jnp.sum(weight**2)]))

    total = jnp.sum(totals)
    variance = fourth / total - jnp.sum(((first + second) / total) ** 2)
    correction = variance * _unbiasing(total**2 / _off_zero(squares)) / n_rows
    return jnp.sum((first / totals[0] - identity) * (second / totals[1] - identity)) + correction


def split_row_error(
    phi: Array, weight: Array, k: int | Array, n_rows: ArrayLike = jnp.inf
) -> Array:
    """What map k adds to ‖C − I‖²_F, by the batch's two halves: unbiased; may be negative.

    With the maps before it frozen that is 2 Σ_{j<k} c_jk² + (c_kk − 1)²; columns after k are zero.
    `n_rows` is that of `split_gram_error`.
    """
    half = phi.shape[0] // 2
    identity = jnp.arange(phi.shape[1]) == k
    entries = phi * phi[:, k, None]

    def row(of_rows: slice) -> Array:
        return expectation(entries[of_rows], weight[of_rows]) - identity

    variance = expectation(entries**2, weight) - expectation(entries, weight) ** 2
    n_effective = total_weight(weight) ** 2 / _off_zero(over_devices(jnp.sum(weight**2)))
    correction = variance * _unbiasing(n_effective) / n_rows
    errors = row(slice(half)) * row(slice(half, None)) + correction
    return 2 * jnp.sum(errors) - errors[k]


def _unbiasing(n_effective: Array) -> Array:
    """m/(m − 1): what makes a batch's variance about its own mean unbiased, m = (Σ w)²/Σ w²."""
    return 1 + 1 / jnp.maximum(n_effective - 1, 1)


# --- smoothness --------------------------------------------------------------------------------


def dirichlet_form(f: GradientField, g: GradientField, weight: Array | None = None) -> Array:
    """⟨f, g⟩_de = ∫ ∇f · ∇g p dx (eq:bilinear_form_1_original), from the gradients of f and g."""
    return expectation(dot(f, g), weight)


def modified_dirichlet_form(
    metric: Metric, x: Array, f: GradientField, g: GradientField, weight: Array | None = None
) -> Array:
    """⟨f, g⟩_mde = ∫ (A∇f)ᵀ(A∇g) p dx (eq:bilinear_form_1)."""
    return dirichlet_form(metric.apply(x, f), metric.apply(x, g), weight)


def modified_dirichlet_energy(
    metric: Metric, x: Array, f: GradientField, weight: Array | None = None
) -> Array:
    """⟨f, f⟩_mde = ∫ ‖A∇f‖² p dx (eq:dirichlet_energy), the loss L_mde."""
    transformed = metric.apply(x, f)
    return dirichlet_form(transformed, transformed, weight)


def anisotropy(log_scales: Array, weight: Array | None = None) -> Array:
    """E[mean_i (log λ_i)²], the penalty of App. C, from log λ of shape (n, d)."""
    return expectation(jnp.mean(log_scales**2, axis=-1), weight)


# --- readout -----------------------------------------------------------------------------------


class Readout(eqx.Module):
    """The affine map Φ ↦ B + WΦ (eq:class_log_prob); `weights` is (n_outputs, K).

    Inactive coordinates enter Φ as zeros, which leaves their columns of W without effect.
    """

    weights: Array
    bias: Array

    def __call__(self, phi: Array) -> Array:
        """Logits (or regression outputs), shape (n, n_outputs)."""
        return phi @ self.weights.T + self.bias


def init_readout(n_outputs: int, n_components: int, dtype: Any = None) -> Readout:
    """A readout of zeros: every class equally likely. The problem in (W, B) is convex."""
    dtype = dtype or float
    return Readout(jnp.zeros((n_outputs, n_components), dtype), jnp.zeros((n_outputs,), dtype))


def squared_error(outputs: Array, targets: Array, weight: Array | None = None) -> Array:
    """E|outputs − targets|², the mean over outputs; targets have shape (n, n_outputs)."""
    return expectation(jnp.mean((outputs - targets) ** 2, axis=-1), weight)


def cross_entropy(logits: Array, labels: Array, weight: Array | None = None) -> Array:
    """L_class = E[−log p(l|x)] with p = softmax(logits); labels are class indices, shape (n,).

    Rows of weight zero (no label) do not count; a batch without any label costs nothing.
    """
    log_p = jax.nn.log_softmax(logits, axis=-1)
    nll = -jnp.take_along_axis(log_p, labels[:, None], axis=1, mode="clip")[:, 0]
    return expectation(nll, weight)
