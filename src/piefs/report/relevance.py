"""What a fitted model says matters: directions and columns, from its maps and from its metric.

All are in the inputs that the maps see, z-scored unless the estimator says otherwise. From the
maps: G = E Σ_k ∇φ_k∇φ_kᵀ of the coordinates. From the metric: E (AᵀA)⁻¹, large where slopes are
cheap; at the trace-normalised optimum it is proportional to G^½ (docs/metrics.md).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import FactoredField
from piefs.core.metric import MetricField
from piefs.core.model import Model

ELEMENTS = 2**24  # of the arrays in memory at a time


def gradient_outer_product(model: Model, x: np.ndarray) -> np.ndarray:
    """G = E Σ_k ∇φ_k∇φ_kᵀ of the coordinates over the rows of x, shape (d, d)."""
    return _mean_over_blocks(_summed_outer_products, model, x)


@jax.jit
def _summed_outer_products(model: Model, x: Array) -> Array:
    flat = _gradients(model, x).reshape(-1, x.shape[1])
    return flat.T @ flat


def slopes_by_map(model: Model, x: np.ndarray) -> np.ndarray:
    """E (∂φ_k/∂x_i)² of the coordinates over the rows of x, shape (d, K): what each map is made of.

    The sum over k is the diagonal of `gradient_outer_product`.
    """
    return _mean_over_blocks(_summed_squares, model, x)


@jax.jit
def _summed_squares(model: Model, x: Array) -> Array:
    return jnp.sum(_gradients(model, x) ** 2, axis=0).T


def _mean_over_blocks(
    summed: Callable[[Model, Any], Array], model: Model, x: np.ndarray
) -> np.ndarray:
    """The mean over rows of what `summed` adds up over a block of them, in double precision."""
    size = max(1, ELEMENTS // (model.mixing.shape[0] * x.shape[1]))
    total = np.zeros(())
    for start in range(0, len(x), size):
        total = total + np.asarray(summed(model, x[start : start + size]), np.float64)
    return total / len(x)


def _gradients(model: Model, x: Array) -> Array:
    """∇φ_k of the coordinates at each row, shape (n, K, d), in the inputs that the maps see."""
    return model.gradients(jnp.asarray(x, model.dtype))


@jax.jit
def _matrices(metric: MetricField, x: Array) -> Array:
    n, d = x.shape
    unit = FactoredField(jnp.tile(jnp.eye(d, dtype=x.dtype), (n, 1)), jnp.eye(d, dtype=x.dtype))
    columns = metric.apply(jnp.repeat(x, d, axis=0), unit).dense()
    return columns.reshape(n, d, d).transpose(0, 2, 1)


def metric_matrices(model: Model, x: np.ndarray) -> np.ndarray:
    """A(x) at each row of x, shape (n, d, d)."""
    x = np.asarray(model.scaled(jnp.asarray(x, model.mixing.dtype)))
    size = max(1, ELEMENTS // x.shape[1] ** 2)
    blocks = [_matrices(model.metric, x[i : i + size]) for i in range(0, len(x), size)]
    return np.concatenate([np.asarray(block) for block in blocks])


def inverse_metric(model: Model, x: np.ndarray, n_rows: int = 64) -> np.ndarray:
    """E (A(x)ᵀA(x))⁻¹ over at most `n_rows` rows spread over x, shape (d, d)."""
    rows = np.linspace(0, len(x) - 1, min(n_rows, len(x))).astype(int)
    total = np.zeros((x.shape[1], x.shape[1]))
    for row in rows:
        a = metric_matrices(model, x[row : row + 1])[0].astype(np.float64)
        total += np.linalg.inv(a.T @ a)
    return total / len(rows)


def column_relevance(matrix: np.ndarray) -> np.ndarray:
    """The columns' shares of the trace of a (d, d) matrix: they sum to one."""
    diagonal = np.diag(matrix)
    return diagonal / diagonal.sum()
