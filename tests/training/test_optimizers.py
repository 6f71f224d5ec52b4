"""Optimisers: the rate's shape, and which parameters decay."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from piefs.core.losses import init_readout
from piefs.core.maps import init_map
from piefs.core.metric import Off
from piefs.core.networks import generator
from piefs.core.objectives import Trainable
from piefs.training.config import Optimizer
from piefs.training.step import begun, moved, rate_at

pytestmark = pytest.mark.usefixtures("float64")


def params():
    return Trainable(init_map(generator(0), 3, (4, 4)), Off(), init_readout(2, 3))


def test_without_warmup_the_rate_is_a_cosine_from_its_peak_to_zero():
    rates = [float(rate_at(Optimizer("adam", 0.0), 0.1, step, 10)) for step in (0, 5, 10)]
    np.testing.assert_allclose(rates, [0.1, 0.05, 0.0], atol=1e-12)


def test_warmup_climbs_to_the_peak_and_then_falls():
    optimizer = Optimizer("adam", 0.2)
    rates = np.array([float(rate_at(optimizer, 1.0, step, 100)) for step in range(101)])
    assert rates.argmax() in (19, 20)
    assert rates.max() == pytest.approx(1.0, abs=0.01)
    assert np.all(np.diff(rates[:19]) > 0)
    assert np.all(np.diff(rates[20:]) < 0)
    assert rates[0] == pytest.approx(1 / 20)
    assert rates[100] == pytest.approx(0, abs=1e-12)


def test_decay_is_that_of_adamw_on_weights_and_spares_biases():
    start = params()
    grads = jax.tree.map(lambda a: 0.1 + jnp.sin(a), start)
    optimizer, rate = Optimizer("adam", 0.0), 0.05
    ours, _ = moved(optimizer, start, grads, begun(optimizer, start), rate, 0.3)
    reference = {}
    for decay in (0.0, 0.3):
        adamw = optax.adamw(rate, weight_decay=decay)
        updates, _ = adamw.update(grads, adamw.init(start), start)
        reference[decay] = optax.apply_updates(start, updates)
    for layer in range(3):
        np.testing.assert_allclose(
            ours.phi.net.weights[layer], reference[0.3].phi.net.weights[layer], rtol=1e-12
        )
        np.testing.assert_allclose(
            ours.phi.net.biases[layer], reference[0.0].phi.net.biases[layer], rtol=1e-12
        )
    np.testing.assert_allclose(ours.readout.bias, reference[0.0].readout.bias, rtol=1e-12)


def test_decay_shrinks_weights_that_have_no_gradient():
    start = params()
    still = jax.tree.map(jnp.zeros_like, start)
    optimizer = Optimizer("adam", 0.0)
    after, _ = moved(optimizer, start, still, begun(optimizer, start), 0.1, 0.5)
    np.testing.assert_allclose(after.phi.net.weights[0], 0.95 * start.phi.net.weights[0])
    np.testing.assert_array_equal(after.phi.net.biases[0], start.phi.net.biases[0])
