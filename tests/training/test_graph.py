"""Neighbourhood graphs and their eigenmaps."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from piefs.core.maps import stack
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier
from piefs.training import graph
from piefs.training.batches import Samples
from piefs.training.config import Settings
from piefs.training.graph import distilled, eigenmaps, nearest_neighbors, neighbourhood_weights
from piefs.training.readout import probe_cross_entropy
from toys import flat


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


def test_neighbours_are_those_of_brute_force(rng):
    x = rng.normal(size=(50, 3)) + 100
    indices, distances = nearest_neighbors(x, 4)
    distance = cdist(x, x) + np.diag(np.full(50, np.inf))
    np.testing.assert_array_equal(np.sort(indices), np.sort(np.argsort(distance)[:, :4]))
    np.testing.assert_allclose(distances, np.take_along_axis(distance, indices, axis=1), rtol=1e-12)


def test_sparse_and_dense_solvers_agree(rng, monkeypatch):
    x = rng.normal(size=(300, 2)) * [3, 1]
    dense = eigenmaps(x, 3)
    monkeypatch.setattr(graph, "DENSE_POINTS", 10)
    overlap = np.abs(np.sum(dense * eigenmaps(x, 3), axis=0)) / 300
    np.testing.assert_allclose(overlap, 1, atol=1e-3)


def test_coinciding_points_and_far_outliers_have_finite_eigenmaps(rng):
    x = np.concatenate([np.zeros((30, 2)), rng.normal(size=(30, 2)), [[1e6, 1e6]]])
    assert np.all(np.isfinite(eigenmaps(x, 3)))


# --- maps that follow the graph --------------------------------------------------------------


def settings(n_components):
    return Settings(n_components=n_components, hidden=(32, 32), activation="relu")


@pytest.fixture(scope="module")
def ring():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    return angle, np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.slow
def test_distillation_reproduces_the_eigenmaps(ring):
    x = ring[1].astype(np.float32)
    targets = eigenmaps(x, 3)
    maps = distilled(Samples(x, targets.astype(np.float32)), settings(3))
    learned = np.asarray(stack(maps).coordinates(jnp.asarray(x)))
    assert np.mean((learned - targets) ** 2) < 0.01


def test_every_row_is_seen_if_there_are_more_than_a_step_takes(monkeypatch):
    monkeypatch.setattr(graph, "N_STEPS", 400)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (1700, 2)).astype(np.float32)
    targets = np.sign(x[:, :1]) * np.where(np.arange(1700) < 1000, 1, 2)[:, None]
    maps = distilled(Samples(x, targets.astype(np.float32)), settings(1))
    learned = np.asarray(stack(maps).coordinates(jnp.asarray(x)))
    mean = np.abs(learned).mean()
    assert 1.2 < mean < 1.6  # between the targets of the first rows and of the last


def test_probe_is_near_zero_on_separable_and_near_log2_on_random_labels():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    assert probe_cross_entropy(8 * labels[:, None] + rng.normal(size=(600, 1)), labels) < 0.05
    assert probe_cross_entropy(rng.normal(size=(600, 1)), labels) == pytest.approx(0.69, abs=0.03)


SMALL = {
    "schedule": "sequential",
    "n_components": 3,
    "steps_per_component": 30,
    "hidden": (16,),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    return rng.normal(size=(300, 2)) + 3 * y[:, None], y


@pytest.mark.slow
def test_calibration_sets_t_class_from_the_probe_and_freezing_leaves_it(blobs):
    keywords = SMALL | {"pretraining": "graph-laplacian"}
    calibrated = PIEFSClassifier(**flat(t_class="calibrated", **keywords)).fit(*blobs)
    frozen = PIEFSClassifier(**flat(**keywords)).fit(*blobs)
    assert frozen.settings_.weighting.t_class == 0.5
    assert 0 < calibrated.settings_.weighting.t_class < 0.3


def test_warm_start_begins_from_distilled_maps(blobs, monkeypatch):
    monkeypatch.setattr(graph, "N_STEPS", 1000)
    still = SMALL | {"steps_per_component": 1, "learning_rate": 1e-9, "standardize": False}
    errors = {}
    for pretraining in (None, "graph-laplacian"):
        model = PIEFSClassifier(**flat(**still, pretraining=pretraining)).fit(*blobs)
        targets = eigenmaps(blobs[0], 3)[:, 0]
        overlap = np.corrcoef(model.transform(blobs[0])[:, 0], targets)[0, 1]
        errors[pretraining] = 1 - abs(overlap)
    assert errors["graph-laplacian"] < 0.05 < errors[None]


def test_calibration_without_warm_start_is_refused(blobs):
    with pytest.raises(InputError, match="graph-laplacian"):
        PIEFSClassifier(**flat(t_class="calibrated", **SMALL)).fit(*blobs)


def test_too_few_rows_for_the_graph_are_refused():
    with pytest.raises(InputError, match="rows"):
        PIEFSClassifier(**flat(pretraining="graph-laplacian", **SMALL)).fit(
            np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
        )
