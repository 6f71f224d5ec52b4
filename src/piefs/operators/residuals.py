"""The operator itself, Lφ = −(1/p) div(p M∇φ) + Vφ with M = AᵀA, and how far from λφ it is."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.maps import ScalarMap
from piefs.core.metric import Metric, Off
from piefs.operators.coefficients import Constant, tensor
from piefs.operators.domains import Points
from piefs.operators.finish import blocks
from piefs.operators.problems import EigenProblem
from piefs.operators.trial import BatchFunction, n_units, units, with_gradients


def operator(problem: EigenProblem, functions: BatchFunction, x: Array) -> tuple[Array, Array]:
    """φ(x) and Lφ(x), both (n, k), of functions (n, d) → (n, k).

    Written out: Lφ = −M : ∇²φ − (div M + M∇log p) · ∇φ + Vφ. On a surface, where A projects on the
    tangents, this is the surface's own operator.
    """
    value, gradient = with_gradients(functions, x)
    _, hessian = with_gradients(lambda x: with_gradients(functions, x)[1], x)
    m = tensor(problem.operator_metric, x)
    log_slope = jax.grad(lambda x: jnp.sum(problem.log_density(x)))(x)
    drift = tensor_divergence(problem.operator_metric, x) + jnp.einsum("nij,nj->ni", m, log_slope)
    image = -jnp.einsum("nij,nkij->nk", m, hessian) - jnp.einsum("ni,nki->nk", drift, gradient)
    if problem.potential is not None:
        image = image + problem.potential(x)[:, None] * value
    return value, image


def tensor_divergence(metric: Metric, x: Array) -> Array:
    """(div M)_j = Σ_i ∂_i M_ij, shape (n, d); backwards, as learned metrics allow no other way."""
    if isinstance(metric, Off | Constant):
        return jnp.zeros_like(x)
    jacobian = jax.vmap(jax.jacrev(lambda row: tensor(metric, row[None])[0]))(x)
    return jnp.einsum("niji->nj", jacobian)


def residuals(
    problem: EigenProblem,
    maps: ScalarMap,
    coefficients: np.ndarray,
    eigenvalues: np.ndarray,
    points: Points,
) -> np.ndarray:
    """‖Lφ − λφ‖ / ‖φ‖ in L²(p) of each function, (k,)."""
    misses, norms = 0.0, 0.0
    width = n_units(maps) * (1 + problem.dimension) ** 2
    for x, weight in blocks(problem.measured(points), width):
        block = _squares(problem, maps, jnp.asarray(coefficients), eigenvalues, x, weight)
        misses, norms = misses + np.asarray(block[0]), norms + np.asarray(block[1])
    return np.sqrt(misses / norms)


@partial(jax.jit, static_argnums=0)
def _squares(
    problem: EigenProblem,
    maps: ScalarMap,
    coefficients: Array,
    eigenvalues: Array,
    x: Array,
    weight: Array,
) -> tuple[Array, Array]:
    value, image = operator(problem, lambda x: units(problem, maps, x) @ coefficients, x)
    return weight @ (image - eigenvalues * value) ** 2, weight @ value**2
