"""What a fitted model says matters: directions and columns, from its maps and from its metric.

All are in the inputs that the maps see, z-scored unless the estimator says otherwise. From the
maps: G = E Σ_k ∇φ_k∇φ_kᵀ of the coordinates. From the metric: E (AᵀA)⁻¹, large where slopes are
cheap; at the trace-normalised optimum it is proportional to G^½ (docs/metrics.md). The closed
form has A = Λ⁻¹, with λ that the evidence has chosen.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from piefs.core.model import Model
from piefs.training.evaluation import compiled, needs_jax

ELEMENTS = 2**23  # of the arrays in memory at a time


def gradient_outer_product(model: Model, x: np.ndarray) -> np.ndarray:
    """G = E Σ_k ∇φ_k∇φ_kᵀ of the coordinates over the rows of x, shape (d, d)."""
    flat = (block.reshape(-1, x.shape[1]) for block in _gradients(model, x))
    return sum((rows.T @ rows for rows in flat), np.zeros(())) / len(x)


def slopes_by_map(model: Model, x: np.ndarray) -> np.ndarray:
    """E (∂φ_k/∂x_i)² of the coordinates over the rows of x, shape (d, K): what each map is made of.

    The sum over k is the diagonal of `gradient_outer_product`.
    """
    blocks = _gradients(model, x)
    return sum((np.sum(block**2, axis=0).T for block in blocks), np.zeros(())) / len(x)


def _gradients(model: Model, x: np.ndarray) -> Iterator[np.ndarray]:
    """∇φ_k of the coordinates at the rows of x, (n, K, d), block by block in double precision."""
    function = compiled("gradients") if needs_jax(model) else Model.gradients
    size = max(1, ELEMENTS // (len(model.mixing) * x.shape[1]))
    for start in range(0, len(x), size):
        yield np.asarray(function(model, x[start : start + size].astype(model.dtype)), np.float64)


def kernel_rates(model: Model) -> np.ndarray:
    """λ of the closed form's kernel, (d,): how much each input counts in a distance."""
    return np.exp(np.asarray(model.maps.log_lam, np.float64))


def metric_matrices(model: Model, x: np.ndarray) -> np.ndarray:
    """A(x) at each row of x, shape (n, d, d)."""
    if not needs_jax(model):
        return np.repeat(np.diag(1 / kernel_rates(model))[None], len(x), axis=0)
    import jax
    import jax.numpy as jnp

    from piefs.core.gradients import DenseField

    unit = jnp.eye(x.shape[1], dtype=model.dtype)

    def matrix(row: Any) -> Any:
        rows = jnp.broadcast_to(row, unit.shape)
        return model.metric.apply(rows, DenseField(unit)).dense().T

    z = model.scaled(np.asarray(x, model.dtype)).astype(model.dtype)
    return np.asarray(jax.lax.map(matrix, z, batch_size=max(1, ELEMENTS // unit.size)))


def inverse_metric(model: Model, x: np.ndarray, n_rows: int = 64) -> np.ndarray:
    """E (A(x)ᵀA(x))⁻¹ over at most `n_rows` rows spread over x, shape (d, d)."""
    rows = np.linspace(0, len(x) - 1, min(n_rows, len(x))).astype(int)
    matrices = (a.astype(np.float64) for a in metric_matrices(model, x[rows]))
    return sum((np.linalg.inv(a.T @ a) for a in matrices), np.zeros(())) / len(rows)


def column_relevance(matrix: np.ndarray) -> np.ndarray:
    """The columns' shares of the trace of a (d, d) matrix: they sum to one."""
    diagonal = np.diag(matrix)
    return diagonal / diagonal.sum()
