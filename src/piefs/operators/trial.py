"""Trial functions: networks of embedded points, times the factor that all functions carry.

For training, the outputs φ_1 … φ_K of K maps. For the final Ritz step, all units of the maps' last
hidden layers, and the constant: a Galerkin basis of several hundred trained functions, whose span
contains the outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from piefs.core.maps import ScalarMap, coordinates_and_gradients
from piefs.core.networks import ACTIVATIONS, MLP
from piefs.operators.coefficients import transformed
from piefs.operators.problems import EigenProblem

BatchFunction = Callable[[Array], Array]


def with_gradients(function: BatchFunction, x: Array) -> tuple[Array, Array]:
    """f(x) and ∂f/∂x with the derivative's axis last, for a function of rows.

    Forward mode, one pass for each coordinate: rows do not mix, so that one tangent serves all.
    """
    directions = jnp.broadcast_to(
        jnp.eye(x.shape[1], dtype=x.dtype)[:, None, :], (x.shape[1], *x.shape)
    )
    value, push = jax.linearize(function, x)
    return value, jnp.moveaxis(jax.vmap(push)(directions), 0, -1)


def outputs(problem: EigenProblem, maps: ScalarMap, x: Array) -> tuple[Array, Array]:
    """The maps' functions, (n, K), and their gradients in x, (n, K, d); written out as in `maps`.

    ∇(c f∘e) = c (∂e)ᵀ∇f + f ∇c, with c the factor and e the embedding.
    """
    inputs, jacobian = with_gradients(problem.inputs, x)
    factor, slope = with_gradients(problem.factor, x)
    value, gradient = coordinates_and_gradients(maps, inputs)
    pulled = jnp.einsum("nkm,nmd->nkd", gradient, jacobian)
    return (
        factor[:, None] * value,
        factor[:, None, None] * pulled + value[:, :, None] * slope[:, None, :],
    )


def units(problem: EigenProblem, maps: ScalarMap, x: Array) -> Array:
    """The basis of the Ritz step, (n, 1 + K h): the factor itself, then all last hidden units."""
    hidden = jax.vmap(_last_hidden, in_axes=(0, None), out_axes=1)(maps.net, problem.inputs(x))
    flat = hidden.reshape(x.shape[0], -1)
    basis = jnp.concatenate([jnp.ones((x.shape[0], 1), flat.dtype), flat], axis=1)
    return problem.factor(x)[:, None] * basis


def n_units(maps: ScalarMap) -> int:
    """The size 1 + K h of that basis."""
    n_maps, width, _ = maps.net.weights[-1].shape
    return 1 + n_maps * width


def _last_hidden(net: MLP, x: Array) -> Array:
    sigma = ACTIVATIONS[net.activation].value
    for w, b in zip(net.weights[:-1], net.biases[:-1], strict=True):
        x = sigma(x @ w + b)
    return x


def forms(
    problem: EigenProblem, x: Array, weight: Array, value: Array, gradient: Array
) -> tuple[Array, Array]:
    """D = Σ w (A∇f_i · A∇f_j + V f_i f_j) and G = Σ w f_i f_j, both (m, m), of functions f."""
    fluxes = transformed(problem.operator_metric, x, gradient)
    rows = jnp.moveaxis(fluxes, -1, 0).reshape(-1, value.shape[1])
    weighted = weight[:, None] * value
    dirichlet = (jnp.tile(weight, fluxes.shape[-1])[:, None] * rows).T @ rows
    if problem.potential is not None:
        dirichlet = dirichlet + (problem.potential(x)[:, None] * weighted).T @ value
    return dirichlet, weighted.T @ value
