"""The final Ritz step: a generalised eigenproblem over all trained units, in double precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array

from piefs.core.maps import ScalarMap
from piefs.operators.domains import Points
from piefs.operators.problems import EigenProblem
from piefs.operators.trial import forms, n_units, units, with_gradients

BLOCK_BYTES = 2**26
"""Size of the largest array of a block of points."""
EXACT_FLOOR = 1e-12
"""Directions of the basis below this share of the longest are noise of the arithmetic."""
SAMPLED_FLOOR = 1e-7
"""With random points, shorter directions are noise of the sample: they would fit its gaps."""


class Matrices(NamedTuple):
    """The forms D and G over a basis, whose first function is the factor of all others."""

    dirichlet: np.ndarray
    gram: np.ndarray


def assemble(problem: EigenProblem, maps: ScalarMap, points: Points) -> Matrices:
    """D and G over all units, summed over blocks of points."""
    size = n_units(maps)
    total = (jnp.zeros((size, size)), jnp.zeros((size, size)))
    for x, weight in blocks(problem.measured(points), size * (1 + problem.dimension)):
        total = _add(problem, maps, None, total, x, weight)
    return Matrices(*map(np.asarray, total))


def projected(
    problem: EigenProblem, maps: ScalarMap, coefficients: np.ndarray, points: Points
) -> Matrices:
    """D and G over a few combinations of the units, (m, k): what other points say of them."""
    size = coefficients.shape[1]
    total = (jnp.zeros((size, size)), jnp.zeros((size, size)))
    for x, weight in blocks(problem.measured(points), n_units(maps) * (1 + problem.dimension)):
        total = _add(problem, maps, jnp.asarray(coefficients), total, x, weight)
    return Matrices(*map(np.asarray, total))


@partial(jax.jit, static_argnums=0)
def _add(
    problem: EigenProblem,
    maps: ScalarMap,
    coefficients: Array | None,
    total: tuple,
    x: Array,
    weight: Array,
) -> tuple:
    def functions(x: Array) -> Array:
        basis = units(problem, maps, x)
        return basis if coefficients is None else basis @ coefficients

    value, gradient = with_gradients(functions, x)
    return jax.tree.map(jnp.add, total, forms(problem, x, weight, value, gradient))


def blocks(points: Points, width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and weights in blocks of one length, so that one compilation serves all.

    `width` is how many numbers a row will need; rows of no weight fill the last block.
    """
    rows = max(64, BLOCK_BYTES // (8 * width))
    n_blocks = -(-len(points.x) // rows)
    rows = -(-len(points.x) // n_blocks)
    for start in range(0, len(points.x), rows):
        x, weight = points.x[start : start + rows], points.weight[start : start + rows]
        missing = rows - len(x)
        yield (
            np.concatenate([x, np.repeat(x[:1], missing, axis=0)]),
            np.concatenate([weight, np.zeros(missing)]),
        )


def average(parts: Sequence[Matrices]) -> Matrices:
    """The mean over equally good sets of points."""
    return Matrices(*(np.mean(stack, axis=0) for stack in zip(*parts, strict=True)))


class Pairs(NamedTuple):
    """Ritz values, smallest first, (k,), and coefficients over the basis, (m, k); G-orthonormal."""

    values: np.ndarray
    coefficients: np.ndarray


def solve(
    matrices: Matrices, k: int, *, floor: float = EXACT_FLOOR, without_constant: bool = False
) -> Pairs:
    """The k lowest pairs of D v = μ G v over an ill-conditioned basis.

    The basis is scaled to unit length, whitened by G's eigenvectors, and directions shorter than
    `floor` times the longest are dropped; the rest is an ordinary symmetric problem.
    `without_constant` solves in the complement of the constant, the basis's first function.
    """
    dirichlet, gram = matrices
    means = gram[0] / gram[0, 0]
    if without_constant:
        gram = (gram - gram[0, 0] * np.outer(means, means))[1:, 1:]
        dirichlet = dirichlet[1:, 1:]
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    lengths, directions = scipy.linalg.eigh(scale[:, None] * gram * scale)
    kept = lengths > floor * lengths[-1]
    whitening = scale[:, None] * directions[:, kept] / np.sqrt(lengths[kept])
    inner = whitening.T @ dirichlet @ whitening
    last = min(k, inner.shape[0]) - 1
    values, vectors = scipy.linalg.eigh((inner + inner.T) / 2, subset_by_index=[0, last])
    coefficients = whitening @ vectors
    if without_constant:
        coefficients = np.vstack([-means[1:] @ coefficients, coefficients])
    return Pairs(values, coefficients)


def rayleigh_quotients(matrices: Matrices) -> np.ndarray:
    """D_kk / G_kk of each function."""
    return np.diag(matrices.dirichlet) / np.diag(matrices.gram)


def jackknife(
    parts: Sequence[Matrices], k: int, *, floor: float, without_constant: bool
) -> np.ndarray:
    """The error of the k Ritz values by leaving out one of R independent sets of points in turn.

    With μ_r the values without set r and μ̄ their mean: variance (R−1)/R Σ(μ_r − μ̄)², bias
    (R−1)(μ̄ − μ). The bias counts too: a large basis makes itself at home on few points.
    """
    n, whole = len(parts), average(parts)
    options = {"floor": floor, "without_constant": without_constant}

    def without(part: Matrices) -> np.ndarray:
        rest = ((n * a - b) / (n - 1) for a, b in zip(whole, part, strict=True))
        return solve(Matrices(*rest), k, **options).values

    values = np.stack([without(part) for part in parts])
    centre = values.mean(axis=0)
    variance = (n - 1) / n * np.sum((values - centre) ** 2, axis=0)
    bias = (n - 1) * (centre - solve(whole, k, **options).values)
    return np.sqrt(variance + bias**2)
