"""The average gradient outer product, and training with a metric that follows it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import toys
from piefs.core.agop import outer_product
from piefs.core.maps import init_map, stack
from piefs.core.networks import generator
from piefs.training.batches import Samples
from piefs.training.loop import train
from piefs.training.state import N_MARKS, passes_mark

CONFIG = toys.settings(
    schedule="joint",
    n_components=2,
    steps_per_component=80,
    batch_size=32,
    learning_rate=1e-2,
    hidden=(8,),
    activation="silu",
    metric="agop",
    metric_constraint="trace",
    orthogonality=1.0,
    smoothness=0.3,
    log_every=4,
)


@pytest.fixture(scope="module")
def samples():
    """Only the first of four features decides the class."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(128, 4)).astype(np.float32)
    return Samples(x, (x[:, 0] > 0).astype(np.int32))


def test_outer_product_is_the_weighted_mean_over_rows_summed_over_maps(rng):
    maps = stack([init_map(generator(k), 3, (5, 5), "tanh") for k in range(2)])
    x, w = rng.normal(size=(7, 3)).astype(np.float32), rng.uniform(size=7).astype(np.float32)
    _, gradients = map(np.asarray, maps.coordinates_and_gradients(x))
    naive = sum(
        w[i] * np.outer(gradients[i, k], gradients[i, k]) for i in range(7) for k in range(2)
    )
    np.testing.assert_allclose(
        outer_product(maps, x, w / w.sum()), naive / w.sum(), rtol=1e-4, atol=1e-6
    )


def test_marks_are_passed_so_often_in_a_turn_whatever_the_chunks():
    for length in (1, 3, 5):
        starts = range(0, 105, length)
        assert sum(passes_mark(a, min(a + length, 105), 105) for a in starts) == N_MARKS


def test_metric_follows_the_maps_to_the_feature_that_matters(samples):
    seen = []
    final = train(
        samples,
        replace(CONFIG, steps_per_component=240, seed=2),
        n_outputs=2,
        callbacks=[lambda state: seen.append(np.asarray(state.params.metric.gains))],
    )
    metric = final.params.metric
    assert len({gains.tobytes() for gains in seen}) > N_MARKS // 2
    inverse = np.linalg.inv(_matrix(metric))
    relevance = np.diag(inverse @ inverse)
    assert relevance.argmax() == 0
    assert relevance[0] > 1.3 * relevance[1:].max()
    scales = np.exp(np.asarray(metric.log_scales(samples.x[:1])))
    assert np.mean(scales**-2) == pytest.approx(1, rel=1e-5)


def _matrix(metric):
    v = np.asarray(metric.directions)
    return float(metric.base) * (np.eye(len(v)) + v * np.asarray(metric.gains) @ v.T)


def test_interrupted_training_with_a_following_metric_ends_at_the_same_model(samples):
    states = []

    def keep(state):
        copied = jax.tree.map(np.array, (state.params, state.opt_state))
        states.append(replace(state, params=copied[0], opt_state=copied[1]))

    whole = train(samples, CONFIG, n_outputs=2, callbacks=[keep])
    again = train(samples, CONFIG, n_outputs=2, state=states[9])
    assert 0 < states[9].step < CONFIG.steps_per_component
    for a, b in zip(jax.tree.leaves(again.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(a, b)
