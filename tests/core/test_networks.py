import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core.gradients import deal, gather
from piefs.core.networks import ACTIVATIONS, MANY_ROWS, generator, init_mlp, weight_gradient

pytestmark = pytest.mark.usefixtures("float64")

BY_HAND = {
    "relu": lambda z: max(z, 0.0),
    "tanh": math.tanh,
    "softplus": lambda z: math.log1p(math.exp(z)),
    "gelu": lambda z: z * 0.5 * (1 + math.erf(z / math.sqrt(2))),
    "silu": lambda z: z / (1 + math.exp(-z)),
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
@pytest.mark.parametrize("sizes", [(1, 3, 1), (4, 5, 3, 2)])
def test_network_equals_the_naive_loop(activation, sizes, rng, network):
    net = network(rng, sizes, activation)
    x = jnp.asarray(rng.normal(size=(3, sizes[0])))
    out = jax.jit(lambda net, x: net(x))(net, x)
    np.testing.assert_allclose(out, naive_forward(net, x), rtol=1e-12, atol=1e-14)


def test_network_without_hidden_layers_is_affine(rng, network):
    net = network(rng, (3, 2))
    x = jnp.asarray(rng.normal(size=(4, 3)))
    np.testing.assert_allclose(net(x), x @ net.weights[0] + net.biases[0], rtol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_derivative_equals_jax_grad(activation, rng):
    value, derivative, _ = ACTIVATIONS[activation]
    z = jnp.asarray(np.concatenate([[0.0, -8.0, 8.0], 2 * rng.normal(size=40)]))
    ours, by_jax = jax.jit(lambda z: (derivative(z), jax.vmap(jax.grad(value))(z)))(z)
    np.testing.assert_allclose(ours, by_jax, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("stride", [2, 3])
def test_outputs_can_be_had_dealt_out(stride, rng, network):
    net, x = network(rng, (3, 4, 7)), jnp.asarray(rng.normal(size=(6, 3)))
    found, dealt = jax.jit(
        lambda net, x: (net.in_parts(x, partial(deal, stride=stride)), deal(net(x), stride))
    )(net, x)
    for part, expected in zip(found, dealt, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)


def test_centred_outputs_are_the_outputs_less_their_mean(rng, network):
    net, x = network(rng, (3, 4, 7)), jnp.asarray(rng.normal(size=(6, 3)))
    out, centred = jax.jit(lambda net, x: (net(x), net.with_centred_outputs()(x)))(net, x)
    expected = np.asarray(out) - np.mean(out, axis=1, keepdims=True)
    np.testing.assert_allclose(centred, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("activation", "gain"), [("relu", 2), ("tanh", 1)])
def test_initial_parameters_are_uniform_with_variance_gain_over_fan_in(activation, gain):
    net = init_mlp(generator(3), (100, 100, 100), activation)
    for w, b, variance in zip(net.weights, net.biases, (gain / 100, 1 / 100), strict=True):
        w, b = np.asarray(w), np.asarray(b)
        bound = math.sqrt(3 * variance)
        assert 0.98 * bound < np.abs(w).max() <= bound
        assert np.mean(w**2) == pytest.approx(variance, rel=0.05)
        assert 0.9 * 0.1 < np.abs(b).max() <= 0.1
        assert np.unique(b).size == b.size


def test_network_of_output_scale_zero_starts_as_the_constant_zero(rng):
    net = init_mlp(generator(0), (3, 3, 3), output_scale=0.0)
    np.testing.assert_array_equal(net(jnp.asarray(rng.normal(size=(4, 3)))), np.zeros((4, 3)))
    assert np.all(net.weights[0] != 0)


def test_initial_parameters_depend_on_the_key_and_on_nothing_else():
    one, same, other = (init_mlp(generator(s), (3, 3, 3, 3)) for s in (0, 0, 1))
    for a, b, c in zip(*map(jax.tree.leaves, (one, same, other)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(a != c)


def test_layers_of_one_shape_start_different():
    net = init_mlp(generator(0), (3, 3, 3, 3))
    first, second, third = (np.asarray(w) for w in net.weights)
    assert np.all(first != second)
    assert np.all(second != third)


def test_weights_and_biases_start_from_different_random_numbers():
    net = init_mlp(generator(0), (1, 3))
    ratio = np.asarray(net.weights[0])[0] / np.asarray(net.biases[0])
    assert np.ptp(ratio) > 0.1


def test_network_has_the_dtype_asked_for():
    net = init_mlp(generator(0), (3, 3, 3), dtype=jnp.float32)
    assert {a.dtype for a in jax.tree.leaves(net)} == {jnp.dtype("float32")}
    assert net(jnp.ones((4, 3), jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize("rows", [7, MANY_ROWS])
@pytest.mark.parametrize(("d", "h"), [(9, 3), (3, 9)])
def test_weight_gradient_is_the_plain_product_for_any_shape(rows, d, h, rng):
    x, g = rng.standard_normal((rows, d)), rng.standard_normal((rows, h))
    np.testing.assert_allclose(weight_gradient(x, g), x.T @ g, rtol=1e-12, atol=1e-12)


def test_weight_gradient_of_many_wide_rows_keeps_the_fast_order_of_the_product():
    program = jax.jit(weight_gradient).lower(jnp.ones((MANY_ROWS, 784)), jnp.ones((MANY_ROWS, 64)))
    assert "tensor<64x784" in program.as_text()
    assert "optimization_barrier" in program.as_text()


@pytest.mark.parametrize("rows", [7, MANY_ROWS])
def test_dealt_outputs_have_the_derivatives_of_plain_products(rows, rng, network):
    net, x = network(rng, (9, 5, 4)), rng.standard_normal((rows, 9))

    def plain(net, x):
        return jnp.sum(jnp.sin(net(x)))

    def dealt(net, x):
        return jnp.sum(jnp.sin(gather(net.in_parts(x, partial(deal, stride=2)))))

    expected, found = (jax.jit(jax.grad(f, argnums=(0, 1)))(net, x) for f in (plain, dealt))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), expected, found
    )


def test_a_network_can_be_differentiated_forwards(rng, network):
    net, x = network(rng, (4, 5, 1), "tanh"), rng.standard_normal((3, 4))
    forward, backward = (
        jax.jit(mode(lambda r: net(r[None])[0, 0]))(x[0]) for mode in (jax.jacfwd, jax.grad)
    )
    np.testing.assert_allclose(forward, backward, rtol=1e-12)
