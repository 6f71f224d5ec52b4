"""The final Ritz step: a generalised eigenproblem over all trained units, in double precision."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg

from piefs.core.maps import ScalarMap
from piefs.operators.domains import Points
from piefs.operators.problem import EigenProblem
from piefs.operators.trial import forms, n_units, summed, units, with_gradients

EXACT_FLOOR = 1e-12
"""Directions of the basis below this share of the longest are noise of the arithmetic."""
SAMPLED_FLOOR = 1e-7
"""With random points, shorter directions are noise of the sample."""


class Matrices(NamedTuple):
    """The forms D and G over a basis."""

    dirichlet: np.ndarray
    gram: np.ndarray


def assemble(
    problem: EigenProblem, maps: ScalarMap, points: Points, mixing: np.ndarray | None = None
) -> Matrices:
    """D and G over all units, or over their combinations by `mixing` (m, k)."""
    terms = partial(_forms, problem, maps, mixing)
    width = n_units(maps) * (1 + problem.dimension)
    return Matrices(*summed(terms, problem.measured(points), width))


@partial(jax.jit, static_argnums=0)
def _forms(problem: EigenProblem, maps: ScalarMap, mixing: Any, x: Any, weight: Any) -> tuple:
    functions = partial(units, problem, maps, mixing=mixing)
    return forms(problem, x, weight, *with_gradients(functions, x))


class Pairs(NamedTuple):
    """Ritz values, smallest first, (k,), and coefficients over the basis, (m, k); G-orthonormal."""

    values: np.ndarray
    coefficients: np.ndarray


def solve(matrices: Matrices, k: int, floor: float = EXACT_FLOOR) -> Pairs:
    """The k lowest pairs of D v = μ G v over an ill-conditioned basis.

    The basis is scaled to unit length, whitened by G's eigenvectors, and directions shorter than
    `floor` times the longest are dropped; the rest is an ordinary symmetric problem.
    """
    dirichlet, gram = matrices
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    lengths, directions = scipy.linalg.eigh(scale[:, None] * gram * scale)
    kept = lengths > floor * lengths[-1]
    whitening = scale[:, None] * directions[:, kept] / np.sqrt(lengths[kept])
    inner = whitening.T @ dirichlet @ whitening
    last = min(k, inner.shape[0]) - 1
    values, vectors = scipy.linalg.eigh((inner + inner.T) / 2, subset_by_index=[0, last])
    return Pairs(values, whitening @ vectors)


def jackknife(parts: Sequence[Matrices], k: int) -> tuple[Pairs, np.ndarray]:
    """The k lowest pairs over R independent sets of points, and the error of their Ritz values μ.

    The error is by leaving out each set in turn. With μ_r the values without set r and μ̄ their
    mean: variance (R−1)/R Σ(μ_r − μ̄)², bias (R−1)(μ̄ − μ). The bias counts too: a large basis fits
    itself to few points.
    """
    n, whole = len(parts), [np.mean(stack, axis=0) for stack in zip(*parts, strict=True)]
    pairs = solve(Matrices(*whole), k, SAMPLED_FLOOR)

    def without(part: Matrices) -> np.ndarray:
        rest = ((n * a - b) / (n - 1) for a, b in zip(whole, part, strict=True))
        return solve(Matrices(*rest), k, SAMPLED_FLOOR).values

    values = np.stack([without(part) for part in parts])
    centre = values.mean(axis=0)
    variance = (n - 1) / n * np.sum((values - centre) ** 2, axis=0)
    return pairs, np.sqrt(variance + ((n - 1) * (centre - pairs.values)) ** 2)
