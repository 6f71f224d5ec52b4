"""Reference eigenvalues in one or two dimensions, by a method that shares nothing with networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from piefs.errors import InputError
from piefs.operators.domains import Box, tensor_rule
from piefs.operators.galerkin import Matrices, solve
from piefs.operators.problem import EigenProblem, tensor

DEGREES = {1: 96, 2: 32}


def polynomial_spectrum(problem: EigenProblem, k: int, degree: int | None = None) -> np.ndarray:
    """The k lowest eigenvalues on a box, by Galerkin's method over products of Legendre's.

    For smooth coefficients the error falls exponentially with the degree: at the default degrees it
    is far below that of any network.
    """
    domain, d = problem.domain, problem.dimension
    if not isinstance(domain, Box) or d not in DEGREES or problem.boundary == "periodic":
        raise InputError("reference spectra are for boxes of one or two dimensions, not periodic")
    degree = degree or DEGREES[d]
    rule = tensor_rule("legendre", (2 * degree) ** d, d)
    if rule is None:
        raise InputError("the degree of a reference spectrum must be at least 3")
    nodes, weight = rule
    values, slopes = _products(nodes, degree, 2 / (domain.high - domain.low))
    with jax.enable_x64(True):
        x = jnp.asarray(domain.low + (nodes + 1) / 2 * (domain.high - domain.low))
        factor = np.asarray(problem.factor(x))
        steepness = np.asarray(jax.grad(lambda x: jnp.sum(problem.factor(x)))(x))
        m = np.asarray(tensor(problem, x))
        density = 1.0 if problem.density is None else np.asarray(problem.density(x))
        potential = 0.0 if problem.potential is None else np.asarray(problem.potential(x))
    slopes = factor * slopes + steepness.T[:, None, :] * values
    values = factor * values
    weight = weight * density
    dirichlet = (values * (weight * potential)) @ values.T
    for i in range(d):
        for j in range(d):
            dirichlet += (slopes[i] * (weight * m[:, i, j])) @ slopes[j].T
    gram = (values * weight) @ values.T
    found = solve(Matrices(dirichlet, gram), k).values
    if problem.keeps_constants:
        found[0] = 0.0  # up to rounding it is
    return found


def _products(nodes: np.ndarray, degree: int, stretch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of normalised Legendre polynomials, (m, n), and their gradients, (d, m, n)."""
    scale = np.sqrt(2 * np.arange(degree) + 1)
    derivative = np.polynomial.legendre.legder(np.eye(degree), axis=0)
    lines, steps = [], []
    for axis, t in enumerate(nodes.T):
        table = np.polynomial.legendre.legvander(t, degree - 1)
        lines.append((scale * table).T)
        steps.append(stretch[axis] * (scale * (table[:, :-1] @ derivative)).T)
    if len(lines) == 1:
        return lines[0], np.stack(steps)
    (p, q), (dp, dq) = lines, steps

    def pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1])

    return pairs(p, q), np.stack([pairs(dp, q), pairs(p, dq)])
