"""The Dirichlet energy of a large batch, in blocks that fit into a core's cache.

A metric with a rotation makes a dozen (B, d) arrays; at B = 2048, d = 784 each is 6 MB, and moving
them through memory takes longer than the arithmetic. The energy is a sum over rows, so it and its
derivatives can be summed block by block, and nothing of size (B, d) is ever kept.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from piefs.core.gradients import FactoredField, dot
from piefs.core.metric import MetricField


def energy_sum(metric: MetricField, x: Array, f: FactoredField, weight: Array) -> Array:
    """Σ w ‖A∇f‖² over rows (eq:dirichlet_energy), in blocks if the metric asks for them.

    Differentiable in the metric and in f; the rows x and their weights are data.
    """
    rows = block_length(x.shape[0], metric.block_rows)
    if rows is None:
        return _of_rows(metric, x, f, weight)
    return _in_blocks(rows, metric, x, f, weight)


def _of_rows(metric: MetricField, x: Array, f: FactoredField, weight: Array) -> Array:
    transformed = metric.apply(x, f)
    return weight @ dot(transformed, transformed)


def block_length(n: int, wanted: int | None) -> int | None:
    """The largest block of at most `wanted` rows that divides n; None if n should stay whole.

    A batch size with no divisor between a quarter of `wanted` and `wanted` is not cut.
    """
    if wanted is None or n <= wanted:
        return None
    return next((rows for rows in range(wanted, wanted // 4, -1) if n % rows == 0), None)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _in_blocks(rows: int, metric: MetricField, x: Array, f: FactoredField, weight: Array) -> Array:
    return _of_rows(metric, x, f, weight)


def _forward(
    rows: int, metric: MetricField, x: Array, f: FactoredField, weight: Array
) -> tuple[Array, tuple]:
    """One pass over the blocks gives the energy and all its derivatives."""

    def block(total: tuple, inputs: tuple) -> tuple:
        x, u, weight = inputs

        def energy(metric: MetricField, u: Array, frame: Array) -> Array:
            return _of_rows(metric, x, FactoredField(u, frame), weight)

        derivative = jax.value_and_grad(energy, argnums=(0, 1, 2))
        value, (d_metric, d_u, d_frame) = derivative(metric, u, f.frame)
        return jax.tree.map(jnp.add, total, (value, d_metric, d_frame)), d_u

    blocks = jax.tree.map(lambda a: a.reshape(-1, rows, *a.shape[1:]), (x, f.u, weight))
    zeros = jax.tree.map(jnp.zeros_like, (weight[0], metric, f.frame))
    (total, d_metric, d_frame), d_u = jax.lax.scan(block, zeros, blocks)
    derivatives = (d_metric, FactoredField(d_u.reshape(f.u.shape), d_frame))
    return total, (derivatives, x, weight)


def _backward(rows: int, saved: tuple, sensitivity: Array) -> tuple:
    derivatives, x, weight = saved
    d_metric, d_field = jax.tree.map(lambda a: sensitivity * a, derivatives)
    return d_metric, jnp.zeros_like(x), d_field, jnp.zeros_like(weight)


_in_blocks.defvjp(_forward, _backward)
