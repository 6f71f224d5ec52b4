"""Trial functions, their two forms, the loss that trains them, and the operator applied to them.

A trial function is a network of the embedded point, times the factor that all functions carry.
Training uses the outputs of K maps. The final Ritz step uses all units of their last hidden layers
and the constant: a Galerkin basis of several hundred trained functions that spans the outputs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.maps import ScalarMap
from piefs.core.networks import MLP
from piefs.operators.domains import Function, Points
from piefs.operators.problem import EigenProblem, tensor
from piefs.operators.shapes import PointCloud

BLOCK_BYTES = 2**26
"""Size of the largest array of a block of points."""
JITTER = 1e-11
"""Added to the normalised Gram matrix, so that two equal maps do not stop the training."""


def with_gradients(function: Function, x: Array) -> tuple[Array, Array]:
    """f(x) and ∂f/∂x with the derivative's axis last, for a function of rows.

    Forward mode, one pass for each coordinate: rows do not mix, so that one tangent serves all.
    """
    n, d = x.shape
    directions = jnp.broadcast_to(jnp.eye(d, dtype=x.dtype)[:, None], (d, n, d))
    value, push = jax.linearize(function, x)
    return value, jnp.moveaxis(jax.vmap(push)(directions), 0, -1)


def outputs(problem: EigenProblem, maps: ScalarMap, x: Array) -> tuple[Array, Array]:
    """The maps' functions, (n, K), and their gradients in x, (n, K, d), written out.

    ∇(c f∘e) = c (∂e)ᵀ∇f + f ∇c, with c the factor and e the embedding.
    """
    inputs, jacobian = with_gradients(problem.inputs, x)
    factor, slope = with_gradients(problem.factor, x)
    value, gradient = maps.coordinates_and_gradients(inputs)
    pulled = factor[:, None, None] * jnp.einsum("nkm,nmd->nkd", gradient, jacobian)
    return factor[:, None] * value, pulled + value[:, :, None] * slope[:, None]


def units(problem: EigenProblem, maps: ScalarMap, x: Array, mixing: Any = None) -> Array:
    """The basis of the Ritz step, (n, 1 + K h): the factor itself, then all last hidden units.

    With `mixing`, (1 + K h, k), these combinations of it.
    """
    hidden = jax.vmap(MLP.hidden, in_axes=(0, None), out_axes=1)(maps.net, problem.inputs(x))
    flat = jnp.pad(hidden.reshape(len(x), -1), ((0, 0), (1, 0)), constant_values=1)
    basis = problem.factor(x)[:, None] * flat
    return basis if mixing is None else basis @ mixing


def n_units(maps: ScalarMap) -> int:
    """The size 1 + K h of that basis."""
    n_maps, width, _ = maps.net.weights[-1].shape
    return 1 + n_maps * width


def forms(
    problem: EigenProblem, x: Array, weight: Array, value: Array, gradient: Array
) -> tuple[Array, Array]:
    """D = Σ w (A∇f_i · A∇f_j + V f_i f_j) and G = Σ w f_i f_j, both (m, m), of functions f."""
    fluxes = problem.fluxes(x, gradient)
    rows = jnp.moveaxis(fluxes, -1, 0).reshape(-1, value.shape[1])
    weighted = weight[:, None] * value
    dirichlet = (jnp.tile(weight, fluxes.shape[-1])[:, None] * rows).T @ rows
    if problem.potential is not None:
        dirichlet = dirichlet + (problem.potential(x)[:, None] * weighted).T @ value
    return dirichlet, weighted.T @ value


def block_length(width: int) -> int:
    """How many rows are evaluated at once, if each needs `width` numbers."""
    return max(64, BLOCK_BYTES // (8 * width))


def summed(terms: Callable[..., tuple], points: Points, width: int) -> list[np.ndarray]:
    """The sums of `terms(x, weight)` over blocks of points.

    Rows of weight zero fill the last block, so that one compilation serves all.
    """
    n_blocks = -(-len(points.x) // block_length(width))
    n_rows = -(-len(points.x) // n_blocks)
    missing = (0, n_blocks * n_rows - len(points.x))
    x = np.pad(points.x, (missing, (0, 0)), mode="edge").reshape(n_blocks, n_rows, -1)
    weight = np.pad(points.weight, missing).reshape(n_blocks, n_rows)
    parts = map(terms, x, weight)
    return [np.asarray(sum(term)) for term in zip(*parts, strict=True)]


# --- the loss ----------------------------------------------------------------------------------


def ritz_sum(dirichlet: Array, gram: Array) -> Array:
    """tr(G⁻¹D), the sum of all Ritz values of the span."""
    scale = jax.lax.stop_gradient(1 / jnp.sqrt(jnp.diag(gram)))
    gram = scale[:, None] * gram * scale + JITTER * jnp.eye(len(gram))
    factor = jax.scipy.linalg.cho_factor(gram)
    return jnp.trace(jax.scipy.linalg.cho_solve(factor, scale[:, None] * dirichlet * scale))


class RitzLoss(eqx.Module):
    """The sum of the Ritz values of all maps on a batch of points.

    By the min-max principle it is never below λ_1 + … + λ_K, and only the lowest eigenspaces reach
    that, in any basis: degenerate eigenvalues are no trouble.
    """

    problem: EigenProblem = eqx.field(static=True)

    def __call__(self, maps: ScalarMap, points: Points, _: object = None) -> tuple[Array, Array]:
        """The sum, as the value and as the record."""
        x, weight = jnp.asarray(points.x), jnp.asarray(points.weight) / jnp.sum(points.weight)
        value, gradient = outputs(self.problem, maps, x)
        if self.problem.keeps_constants:  # the parts orthogonal to the constant count
            value = value - weight @ value
        loss = ritz_sum(*forms(self.problem, x, weight, value, gradient))
        return loss, loss


# --- the operator and its residuals ------------------------------------------------------------


def operator(problem: EigenProblem, functions: Function, x: Array) -> tuple[Array, Array]:
    """φ(x) and Lφ(x), both (n, k), of functions (n, d) → (n, k).

    Written out: Lφ = −M : ∇²φ − (div(pM)/p) · ∇φ + Vφ. On a surface, where A projects on the
    tangents, this is the surface's own operator.
    """
    value, gradient = with_gradients(functions, x)
    _, hessian = with_gradients(lambda x: with_gradients(functions, x)[1], x)
    image = -jnp.einsum("nij,nkij->nk", tensor(problem, x), hessian)
    image = image - jnp.einsum("ni,nki->nk", drift(problem, x), gradient)
    if problem.potential is not None:
        image = image + problem.potential(x)[:, None] * value
    return value, image


def drift(problem: EigenProblem, x: Array) -> Array:
    """(div(pM)/p)_j = Σ_i ∂_i(p M_ij)/p, (n, d); learned metrics allow only reverse mode."""
    density = problem.density or problem.domain.density
    weighted = lambda row: density(row[None])[0] * tensor(problem, row[None])[0]  # noqa: E731
    return jnp.einsum("niji->nj", jax.vmap(jax.jacrev(weighted))(x)) / density(x)[:, None]


def residuals(
    problem: EigenProblem, maps: ScalarMap, coefficients: Any, eigenvalues: Any, points: Points
) -> np.ndarray:
    """‖Lφ − λφ‖ / ‖φ‖ in L²(p) of each function, (k,); NaN if p has no formula."""
    if isinstance(problem.domain, PointCloud):
        return np.full(len(eigenvalues), np.nan)
    terms = partial(_squares, problem, maps, coefficients, eigenvalues)
    width = n_units(maps) * (1 + problem.dimension) ** 2
    misses, norms = summed(terms, problem.measured(points), width)
    return np.sqrt(misses / norms)


@partial(jax.jit, static_argnums=0)
def _squares(
    problem: EigenProblem, maps: ScalarMap, coefficients: Any, eigenvalues: Any, x: Any, weight: Any
) -> tuple[Array, Array]:
    """Σ w (Lφ − λφ)² and Σ w φ² of a block."""
    value, image = operator(problem, partial(units, problem, maps, mixing=coefficients), x)
    return weight @ (image - eigenvalues * value) ** 2, weight @ value**2
