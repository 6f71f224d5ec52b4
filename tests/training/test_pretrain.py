"""The graph-Laplacian warm start."""

import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core.maps import init_map, stack
from piefs.core.networks import generator
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier
from piefs.estimators.measures import probe_cross_entropy
from piefs.training.graphs import eigenmaps
from piefs.training.pretrain import distill, graph_laplacian_maps, subsample


@pytest.fixture(scope="module")
def circle():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    return angle, np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_distillation_reproduces_the_eigenmaps(circle):
    x = circle[1].astype(np.float32)
    targets = eigenmaps(x, 3)
    maps = graph_laplacian_maps(x, targets, hidden=(32, 32), activation="relu", seed=0)
    learned = np.asarray(stack(maps).coordinates(jnp.asarray(x)))
    assert np.mean((learned - targets) ** 2) < 0.01


def test_distillation_lowers_the_loss_of_every_map(circle):
    x = circle[1].astype(np.float32)
    targets = jnp.asarray(eigenmaps(x, 3), jnp.float32)
    fresh = stack([init_map(key, 2, (16,)) for key in map(generator, range(3))])
    error = [
        np.mean((np.asarray(maps.coordinates(x)) - targets) ** 2, axis=0)
        for maps in (fresh, distill(fresh, x, targets, 200))
    ]
    assert (error[1] < error[0]).all()


def test_many_rows_are_distilled_block_by_block_and_every_row_is_seen(equations):
    """2,500 rows are three blocks of at most 1,000: no step forms layers of all of them."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.uniform(-1, 1, (2500, 2)), jnp.float32)
    fresh = stack([init_map(generator(0), 2, (16,))])
    lengths = {
        size
        for one in equations(lambda x, y: distill(fresh, x, y, 3), x, x[:, :1])
        if one.primitive.name == "dot_general"
        for size in one.outvars[0].aval.shape
    }
    assert 834 in lengths
    assert 2500 not in lengths
    targets = jnp.sign(x[:, :1]) * jnp.where(jnp.arange(2500) < 1700, 1, 2)[:, None]
    learned = distill(fresh, x, targets, 600)
    error = np.mean((np.asarray(learned.coordinates(x)) - targets)[1700:] ** 2)
    unseen = np.mean(
        (np.asarray(distill(fresh, x[:1700], targets[:1700], 600).coordinates(x)) - targets)[1700:]
        ** 2
    )
    assert error < unseen


def test_subsample_is_distinct_rows_and_fixed_by_the_seed():
    rows = subsample(5000, 3)
    assert len(np.unique(rows)) == 1000
    np.testing.assert_array_equal(rows, subsample(5000, 3))
    assert not np.array_equal(rows, subsample(5000, 4))
    assert len(subsample(50, 0)) == 50


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


def test_calibration_sets_t_class_from_the_probe_and_freezing_leaves_it(blobs):
    keywords = SMALL | {"pretraining": "graph-laplacian"}
    calibrated = PIEFSClassifier(t_class="calibrated", **keywords).fit(*blobs)
    frozen = PIEFSClassifier(**keywords).fit(*blobs)
    assert frozen.settings_.weighting.t_class == 0.5
    assert 0 < calibrated.settings_.weighting.t_class < 0.3


def test_warm_start_begins_from_distilled_maps(blobs):
    still = SMALL | {"steps_per_component": 1, "learning_rate": 1e-9, "standardize": False}
    errors = {}
    for pretraining in (None, "graph-laplacian"):
        model = PIEFSClassifier(**still, pretraining=pretraining).fit(*blobs)
        targets = eigenmaps(blobs[0], 3)[:, 0]
        overlap = np.corrcoef(model.transform(blobs[0])[:, 0], targets)[0, 1]
        errors[pretraining] = 1 - abs(overlap)
    assert errors["graph-laplacian"] < 0.05 < errors[None]


def test_calibration_without_warm_start_is_refused(blobs):
    with pytest.raises(InputError, match="graph-laplacian"):
        PIEFSClassifier(t_class="calibrated", **SMALL).fit(*blobs)


def test_too_few_rows_for_the_graph_are_refused():
    with pytest.raises(InputError, match="rows"):
        PIEFSClassifier(pretraining="graph-laplacian", **SMALL).fit(
            np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
        )
