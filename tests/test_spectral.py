"""Coordinates without labels: maps that continue the eigenmaps of a graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_moons, make_swiss_roll

from piefs import PIEFSClassifier, PIEFSTransformer
from piefs.batches import Batch
from piefs.errors import InputError
from piefs.joint import SpectralObjective
from piefs.losses import init_readout
from piefs.maps import coordinates_and_gradients, init_map, stack
from piefs.metrics import Off
from piefs.objective import Trainable

SMALL = {"n_components": 3, "steps_per_component": 500, "random_state": 0}


def test_the_loss_is_distance_and_energy(rng, float64):
    maps = stack([init_map(jax.random.key(k), 2, (5,), "tanh") for k in range(3)])
    x, target = jnp.asarray(rng.normal(size=(9, 2))), jnp.asarray(rng.normal(size=(9, 3)))
    batch = Batch(x, jnp.zeros((9, 3)), target, jnp.ones(9), jnp.ones(9))
    params = Trainable(maps, Off(), init_readout(0, 3))
    loss, record = SpectralObjective(0.3)(params, batch, 0)
    phi, gradients = coordinates_and_gradients(maps, x)
    distance = np.mean(np.sum((np.asarray(phi) - np.asarray(target)) ** 2, axis=1))
    energy = np.mean(np.sum(np.asarray(gradients) ** 2, axis=(1, 2)))
    assert float(loss) == pytest.approx(distance + 0.3 * energy, rel=1e-12)
    assert float(record.loss_class) == pytest.approx(distance, rel=1e-12)


def test_the_first_coordinate_runs_along_the_roll_on_rows_it_has_not_seen():
    X, along = make_swiss_roll(1500, random_state=0)
    model = PIEFSTransformer(**SMALL).fit(X[:1000])
    first = model.transform(X[1000:])[:, 0]
    ranks = np.argsort(np.argsort(first)), np.argsort(np.argsort(along[1000:]))
    assert abs(np.corrcoef(*ranks)[0, 1]) > 0.95


def test_coordinates_are_orthonormal_on_all_rows_not_only_the_graphs():
    X, _ = make_moons(600, noise=0.05, random_state=0)
    model = PIEFSTransformer(graph_rows=200, batch_size=300, **SMALL).fit(X)
    phi = model.transform(X).astype(float)
    assert np.abs(phi.T @ phi / len(X) - np.eye(3)).max() < 1e-6
    assert model.settings_["schedule"] == "spectral"
    assert model.config_.batch_size == 200  # the graph's rows are what is trained on


def test_few_rows_still_give_coordinates():
    X = np.random.default_rng(0).normal(size=(5, 2))
    few = {"steps_per_component": 5, "random_state": 0}
    assert PIEFSTransformer(**few).fit_transform(X).shape == (5, 3)
    assert PIEFSTransformer(5, **few).fit(X).settings_["schedule"] == "joint"


def test_schedules_that_need_labels_or_none_say_so():
    X, y = make_moons(50, random_state=0)
    with pytest.raises(InputError, match="needs labels"):
        PIEFSTransformer(schedule="nested", **SMALL).fit(X)
    with pytest.raises(InputError, match="does not look at labels"):
        PIEFSClassifier(schedule="spectral", **SMALL).fit(X, y)


def test_joint_training_without_labels_works_too():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    model = PIEFSTransformer(schedule="joint", **SMALL).fit(X)
    assert model.gram_error_ < 1e-6
