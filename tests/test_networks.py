import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.networks import ACTIVATIONS, init_mlp

pytestmark = pytest.mark.usefixtures("float64")

BY_HAND = {
    "relu": lambda z: max(z, 0.0),
    "tanh": math.tanh,
    "softplus": lambda z: math.log1p(math.exp(z)),
    "gelu": lambda z: z * 0.5 * (1 + math.erf(z / math.sqrt(2))),
    "sin": math.sin,
}


def naive_forward(net, x):
    """One row, one layer, one unit, one product at a time."""
    outputs = []
    for row in np.asarray(x):
        values = list(row)
        for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
            sums = [
                sum(values[i] * float(w[i, j]) for i in range(w.shape[0])) + float(b[j])
                for j in range(w.shape[1])
            ]
            is_last = layer == len(net.weights) - 1
            values = sums if is_last else [BY_HAND[net.activation](z) for z in sums]
        outputs.append(values)
    return np.array(outputs)


def test_every_activation_has_a_counterpart_by_hand():
    assert set(BY_HAND) == set(ACTIVATIONS)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(1, 3, 1), (4, 5, 3, 2), (3, 2)])
def test_network_equals_the_naive_loop(activation, sizes, rng):
    net = init_mlp(jax.random.key(1), sizes, activation)
    x = jnp.asarray(rng.normal(size=(3, sizes[0])))
    np.testing.assert_allclose(net(x), naive_forward(net, x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_derivative_equals_jax_grad(activation, rng):
    value, derivative = ACTIVATIONS[activation]
    z = jnp.asarray(np.concatenate([[0.0, -8.0, 8.0], 2 * rng.normal(size=40)]))
    np.testing.assert_allclose(derivative(z), jax.vmap(jax.grad(value))(z), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_are_the_derivatives_at_the_pre_activations(activation, rng):
    net = init_mlp(jax.random.key(2), (3, 4, 5, 2), activation)
    x = jnp.asarray(rng.normal(size=(6, 3)))
    out, slopes = net.with_slopes(x)
    np.testing.assert_array_equal(out, net(x))
    value, derivative = ACTIVATIONS[activation]
    z1 = x @ net.weights[0] + net.biases[0]
    z2 = value(z1) @ net.weights[1] + net.biases[1]
    assert [s.shape for s in slopes] == [(6, 4), (6, 5)]
    np.testing.assert_allclose(slopes[0], derivative(z1), rtol=1e-12)
    np.testing.assert_allclose(slopes[1], derivative(z2), rtol=1e-12)


def test_initial_parameters_are_uniform_within_the_inverse_root_of_fan_in():
    net = init_mlp(jax.random.key(3), (400, 100, 100, 7))
    assert [w.shape for w in net.weights] == [(400, 100), (100, 100), (100, 7)]
    assert [b.shape for b in net.biases] == [(100,), (100,), (7,)]
    for w, b in zip(net.weights, net.biases, strict=True):
        bound = w.shape[0] ** -0.5
        for values in (w, b):
            assert np.abs(values).max() <= bound
        assert np.abs(w).max() > 0.98 * bound
        assert np.std(w) == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert np.unique(b).size == b.size


def test_initial_parameters_depend_on_the_key_and_on_nothing_else():
    one, same, other = (init_mlp(jax.random.key(s), (3, 3, 3)) for s in (0, 0, 1))
    for a, b, c in zip(*map(jax.tree.leaves, (one, same, other)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(a != c)


def test_layers_of_one_shape_start_different():
    net = init_mlp(jax.random.key(0), (3, 3, 3, 3))
    first, second, third = (np.asarray(w) for w in net.weights)
    assert np.all(first != second)
    assert np.all(second != third)


def test_network_has_the_dtype_asked_for():
    net = init_mlp(jax.random.key(0), (2, 3, 1), dtype=jnp.float32)
    assert {a.dtype for a in jax.tree.leaves(net)} == {jnp.dtype("float32")}
    assert net(jnp.ones((4, 2), jnp.float32)).dtype == jnp.float32
