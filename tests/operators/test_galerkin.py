"""The Ritz step over an ill-conditioned basis, its error bars, and comparisons of spectra."""

import numpy as np
import pytest

from piefs.operators import clusters, principal_angles
from piefs.operators.galerkin import Matrices, jackknife, solve


def monomials(n, points=400):
    """Forms of 1, x, …, x^{n−1} on [−1, 1]: as ill-conditioned as can be."""
    x, weight = np.polynomial.legendre.leggauss(points)
    value = x[:, None] ** np.arange(n)
    slope = np.arange(n) * np.concatenate([np.zeros((points, 1)), value[:, :-1]], axis=1)
    weight = weight / 2
    return Matrices(slope.T @ (weight[:, None] * slope), value.T @ (weight[:, None] * value))


def test_a_basis_beyond_double_precision_still_gives_the_lowest_values():
    matrices = monomials(40)
    assert np.linalg.cond(matrices.gram) > 1e15
    values, coefficients = solve(matrices, 5)
    np.testing.assert_allclose(values, (np.pi * np.arange(5) / 2) ** 2, rtol=1e-6, atol=1e-7)
    gram = coefficients.T @ matrices.gram @ coefficients
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-4)


def test_jackknife_knows_the_scatter_of_a_mean():
    rng = np.random.default_rng(0)
    draws = 1 + 0.1 * rng.normal(size=16)
    parts = [Matrices(np.array([[d]]), np.array([[1.0]])) for d in draws]
    pairs, bar = jackknife(parts, 1)
    assert pairs.values[0] == pytest.approx(draws.mean())
    assert bar[0] == pytest.approx(draws.std(ddof=1) / 4, rel=1e-6)


def test_clusters_are_runs_of_nearly_equal_values():
    found = clusters(np.array([1e-9, 1.0, 1.001, 1.999, 2.0, 2.003, 3.0]))
    assert [(part.start, part.stop) for part in found] == [(0, 1), (1, 3), (3, 6), (6, 7)]


def test_subspaces_are_compared_whatever_basis_they_come_in(rng):
    first, weight = rng.normal(size=(50, 3)), rng.random(50)
    mixed = first @ rng.normal(size=(3, 3))
    assert principal_angles(first, mixed, weight).max() < 1e-7
    tilted = mixed.copy()
    tilted[:, 0] += 0.1 * rng.normal(size=50)
    angle = principal_angles(first, tilted, weight).max()
    assert 0.01 < angle < 1
