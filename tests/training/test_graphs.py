"""Neighbourhood graphs and their eigenmaps."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from piefs.training import graphs
from piefs.training.graphs import eigenmaps, nearest_neighbors, neighbourhood_weights


@pytest.fixture(scope="module")
def circle():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    return angle, np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_neighbourhood_weights_are_symmetric_without_loops(circle):
    weights = neighbourhood_weights(circle[1], 4).toarray()
    np.testing.assert_allclose(weights, weights.T)
    assert not np.diag(weights).any()
    assert ((weights > 0).sum(axis=1) == 4).all()


def test_eigenmaps_of_a_circle_are_its_fourier_modes(circle):
    angle, x = circle
    maps = eigenmaps(x, 4)
    for frequency, columns in ((1, maps[:, :2]), (2, maps[:, 2:])):
        modes = np.sqrt(2) * np.stack([np.cos(frequency * angle), np.sin(frequency * angle)], 1)
        overlap = columns.T @ modes / len(angle)
        np.testing.assert_allclose(overlap @ overlap.T, np.eye(2), atol=1e-6)


def test_eigenmaps_have_unit_mean_square_and_no_constant(circle):
    maps = eigenmaps(circle[1], 5)
    np.testing.assert_allclose(np.mean(maps**2, axis=0), 1)
    np.testing.assert_allclose(maps.mean(axis=0), 0, atol=1e-8)


def test_first_eigenmap_of_two_clusters_tells_them_apart():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(60, 3)), 50 + rng.normal(size=(40, 3))])
    first = eigenmaps(x, 1)[:, 0]
    assert (first[:60] > 0).all() != (first[60:] > 0).all()
    assert np.ptp(first[:60]) < 1e-6


def test_neighbours_are_those_of_brute_force_across_blocks(rng, monkeypatch):
    x = rng.normal(size=(50, 3)) + 100
    monkeypatch.setattr(graphs, "BLOCK_ROWS", 7)
    indices, distances = nearest_neighbors(x, 4)
    distance = cdist(x, x) + np.diag(np.full(50, np.inf))
    np.testing.assert_array_equal(np.sort(indices), np.sort(np.argsort(distance)[:, :4]))
    np.testing.assert_allclose(distances, np.take_along_axis(distance, indices, axis=1), rtol=1e-12)


def test_sparse_and_dense_solvers_agree(rng, monkeypatch):
    x = rng.normal(size=(300, 2)) * [3, 1]
    dense = eigenmaps(x, 3)
    monkeypatch.setattr(graphs, "DENSE_POINTS", 10)
    overlap = np.abs(np.sum(dense * eigenmaps(x, 3), axis=0)) / 300
    np.testing.assert_allclose(overlap, 1, atol=1e-3)


def test_coinciding_points_and_far_outliers_have_finite_eigenmaps(rng):
    x = np.concatenate([np.zeros((30, 2)), rng.normal(size=(30, 2)), [[1e6, 1e6]]])
    assert np.all(np.isfinite(eigenmaps(x, 3)))
