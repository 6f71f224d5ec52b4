from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from piefs.maps import (
    ScalarMap,
    coordinates,
    coordinates_and_gradients,
    init_map,
    n_maps,
    stack,
    unstack,
)
from piefs.networks import ACTIVATIONS, MLP

pytestmark = pytest.mark.usefixtures("float64")


def make_map(rng, d=3, hidden=(5, 4), activation="tanh"):
    """A map with numpy's random parameters: no compilation for each new shape."""
    sizes = (d, *hidden, 1)
    weights = tuple(jnp.asarray(rng.normal(size=pair) / pair[0] ** 0.5) for pair in pairwise(sizes))
    biases = tuple(jnp.asarray(rng.normal(size=size)) for size in sizes[1:])
    return ScalarMap(MLP(weights, biases, activation))


def make_maps(rng, n, **shape):
    return [make_map(rng, **shape) for _ in range(n)]


def assert_identical(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(a, b)


def test_map_equals_its_networks_only_output(rng):
    phi = make_map(rng)
    x = jnp.asarray(rng.normal(size=(6, 3)))
    assert phi(x).shape == (6,)
    np.testing.assert_array_equal(phi(x), phi.net(x)[:, 0])


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("hidden", [(5,), (8, 6), (4, 7, 5)], ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_written_out_gradient_equals_jax_grad(activation, hidden, d, rng):
    phi, x = make_map(rng, d, hidden, activation), jnp.asarray(rng.normal(size=(9, d)))

    @jax.jit
    def written_out_and_differentiated(phi, x):
        value, gradient = phi.value_and_gradient(x)
        by_jax = jax.vmap(jax.value_and_grad(lambda row: phi(row[None])[0]))(x)
        return (value, gradient.dense()), by_jax

    (value, gradient), (expected_value, expected_gradient) = written_out_and_differentiated(phi, x)
    np.testing.assert_allclose(value, expected_value, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-13)
    assert np.abs(expected_gradient).max() > 1e-4


def test_gradient_comes_factored_by_the_first_layer(rng):
    phi = make_map(rng, d=7)
    _, gradient = phi.value_and_gradient(jnp.asarray(rng.normal(size=(6, 7))))
    assert gradient.frame is phi.net.weights[0]
    assert gradient.u.shape == (6, 5)


def test_fresh_maps_have_the_shape_asked_for_and_depend_on_their_key():
    one, same, other = (init_map(jax.random.key(s), 3, (5, 4), "sin") for s in (0, 0, 1))
    assert [w.shape for w in one.net.weights] == [(3, 5), (5, 4), (4, 1)]
    assert one.net.activation == "sin"
    assert_identical(one, same)
    assert np.all(one.net.weights[0] != other.net.weights[0])


@given(n=st.integers(1, 6))
def test_unstack_inverts_stack(n):
    maps = make_maps(np.random.default_rng(n), n)
    stacked = stack(maps)
    assert n_maps(stacked) == n
    restored = unstack(stacked)
    assert len(restored) == n
    for phi, again in zip(maps, restored, strict=True):
        assert_identical(phi, again)


def test_stack_inverts_unstack(rng):
    stacked = stack(make_maps(rng, 4))
    assert_identical(stack(unstack(stacked)), stacked)


@pytest.mark.parametrize("activation", ["relu", "sin"])
def test_stacked_maps_equal_the_individual_ones(activation, rng):
    maps = make_maps(rng, 4, activation=activation)
    x = jnp.asarray(rng.normal(size=(6, 3)))
    phi, gradients = coordinates_and_gradients(stack(maps), x)
    assert phi.shape == (6, 4)
    assert gradients.shape == (6, 4, 3)
    np.testing.assert_allclose(coordinates(stack(maps), x), phi, rtol=1e-12)
    for k, one in enumerate(maps):
        value, gradient = one.value_and_gradient(x)
        np.testing.assert_allclose(phi[:, k], value, rtol=1e-12)
        np.testing.assert_allclose(gradients[:, k], gradient.dense(), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_stacked_evaluation_is_one_matrix_product_for_each_layer(n, rng, equations):
    hidden = (5, 4, 6)
    stacked = stack(make_maps(rng, n, hidden=hidden))
    performed = equations(coordinates, stacked, jnp.ones((7, 3)))
    products = [e for e in performed if e.primitive.name == "dot_general"]
    assert len(products) == len(hidden) + 1
    assert not {"scan", "while"} & {e.primitive.name for e in performed}


def test_written_out_gradient_costs_one_more_product_for_each_inner_layer(rng, equations):
    phi = make_map(rng, hidden=(5, 4, 6))
    factored = equations(lambda x: phi.value_and_gradient(x), jnp.ones((7, 3)))
    products = [e for e in factored if e.primitive.name == "dot_general"]
    assert len(products) == 4 + 2
