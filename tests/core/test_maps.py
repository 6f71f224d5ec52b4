import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core.maps import (
    ScalarMap,
    init_map,
    n_maps,
    stack,
    unstack,
)
from piefs.core.networks import ACTIVATIONS, generator
from piefs.training.config import Optimizer
from piefs.training.step import begun

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def make_map(rng, network):
    def make(d=3, hidden=(5, 4), activation="tanh"):
        return ScalarMap(network(rng, (d, *hidden, 1), activation))

    return make


def assert_identical(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(a, b)


def test_map_equals_its_networks_only_output(rng, make_map):
    phi = make_map()
    x = jnp.asarray(rng.normal(size=(6, 3)))
    assert phi(x).shape == (6,)
    np.testing.assert_array_equal(phi(x), phi.net(x)[:, 0])


@pytest.mark.parametrize(
    ("activation", "d", "hidden"),
    [*((name, 1, (4, 7, 5)) for name in ACTIVATIONS), ("relu", 2, (5,)), ("tanh", 7, (8, 6))],
    ids=str,
)
def test_written_out_gradient_equals_jax_grad(activation, d, hidden, rng, make_map):
    phi, x = make_map(d, hidden, activation), jnp.asarray(rng.normal(size=(9, d)))

    @jax.jit
    def written_out_and_differentiated(phi, x):
        value, gradient = phi.value_and_gradient(x)
        by_jax = jax.vmap(jax.value_and_grad(lambda row: phi(row[None])[0]))(x)
        return (value, gradient.dense()), by_jax

    (value, gradient), (expected_value, expected_gradient) = written_out_and_differentiated(phi, x)
    np.testing.assert_allclose(value, expected_value, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-13)
    assert np.abs(expected_gradient).max() > 1e-4


def some_loss(value, gradient, c):
    return jnp.sum(c * value**2) + jnp.sum(jnp.sin(gradient) ** 2 * c[:, None])


@pytest.mark.parametrize("hidden", [(5,), (4, 5, 3)], ids=str)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_losses_of_value_and_gradient_descend_as_differentiated_twice(
    activation, hidden, rng, make_map
):
    phi, x = make_map(3, hidden, activation), jnp.asarray(rng.normal(size=(9, 3)))
    c = jnp.asarray(rng.normal(size=9))

    def written_out(phi, x):
        value, gradient = phi.value_and_gradient(x)
        return some_loss(value, gradient.dense(), c)

    def differentiated(phi, x):
        value, gradient = jax.vmap(jax.value_and_grad(lambda row: phi(row[None])[0]))(x)
        return some_loss(value, gradient, c)

    ours, by_jax = (
        jax.jit(jax.grad(f, argnums=(0, 1)))(phi, x) for f in (written_out, differentiated)
    )
    assert jax.tree.structure(ours) == jax.tree.structure(by_jax)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(by_jax), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_descending_a_relu_map_takes_two_products_a_hidden_layer_less_than_plain_autodiff(
    rng, make_map, equations
):
    x = jnp.asarray(rng.normal(size=(9, 3)))

    def n_products(activation):
        phi = make_map(3, (7, 7, 7), activation)

        def loss(phi):
            value, gradient = phi.value_and_gradient(x)
            return jnp.sum(value**2) + jnp.sum(gradient.u**2)

        shapes = [
            [v.aval.shape for v in (*e.invars, *e.outvars)]
            for e in equations(jax.grad(loss), phi)
            if e.primitive.name == "dot_general"
        ]
        return sum(
            all(7 in shape and len(shape) == 2 and 3 not in shape for shape in s) for s in shapes
        )

    assert (n_products("relu"), n_products("softplus")) == (8, 12)


def test_gradient_comes_factored_by_the_first_layer(rng, make_map):
    phi = make_map(d=7)
    _, gradient = phi.value_and_gradient(jnp.asarray(rng.normal(size=(6, 7))))
    assert gradient.frame is phi.net.weights[0]
    assert gradient.u.shape == (6, 5)


def test_fresh_maps_have_the_shape_asked_for_and_depend_on_their_key():
    one, same, other = (init_map(generator(s), 3, (3, 3), "sin") for s in (0, 0, 1))
    assert [w.shape for w in one.net.weights] == [(3, 3), (3, 3), (3, 1)]
    assert one.net.activation == "sin"
    assert_identical(one, same)
    assert np.all(one.net.weights[0] != other.net.weights[0])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_unstack_inverts_stack(n, make_map):
    maps = [make_map() for _ in range(n)]
    stacked = stack(maps)
    assert n_maps(stacked) == n
    restored = unstack(stacked)
    assert len(restored) == n
    for phi, again in zip(maps, restored, strict=True):
        assert_identical(phi, again)


def test_stack_inverts_unstack(make_map):
    stacked = stack([make_map() for _ in range(4)])
    assert_identical(stack(unstack(stacked)), stacked)


@pytest.mark.parametrize("activation", ["relu", "sin"])
def test_stacked_maps_equal_the_individual_ones(activation, rng, make_map):
    maps = [make_map(activation=activation) for _ in range(4)]
    x = jnp.asarray(rng.normal(size=(6, 3)))
    phi, gradients = jax.jit(ScalarMap.coordinates_and_gradients)(stack(maps), x)
    assert phi.shape == (6, 4)
    assert gradients.shape == (6, 4, 3)
    np.testing.assert_allclose(jax.jit(ScalarMap.coordinates)(stack(maps), x), phi, rtol=1e-12)
    alone = jax.jit(lambda one, x: (one(x), one.value_and_gradient(x)[1].dense()))
    for k, one in enumerate(maps):
        value, gradient = alone(one, x)
        np.testing.assert_allclose(phi[:, k], value, rtol=1e-11)
        np.testing.assert_allclose(gradients[:, k], gradient, rtol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_stacked_evaluation_is_one_program_of_one_product_a_layer(n, make_map, equations):
    hidden = (5, 4, 6)
    stacked = stack([make_map(hidden=hidden) for _ in range(n)])
    performed = equations(ScalarMap.coordinates, stacked, jnp.ones((7, 3)))
    products = [e for e in performed if e.primitive.name == "dot_general"]
    assert len(products) == len(hidden) + 1
    assert [e.params["length"] for e in performed if e.primitive.name == "scan"] == [n]


def test_written_out_gradient_costs_one_more_product_for_each_inner_layer(make_map, equations):
    phi = make_map(hidden=(5, 4, 6))
    factored = equations(lambda x: phi.value_and_gradient(x), jnp.ones((7, 3)))
    products = [e for e in factored if e.primitive.name == "dot_general"]
    assert len(products) == 4 + 2


def test_a_fresh_map_is_the_papers_unless_told_otherwise():
    net = init_map(generator(0), 2).net
    assert net.activation == "relu"
    assert [w.shape for w in net.weights] == [(2, 64), (64, 64), (64, 64), (64, 1)]


def test_a_new_shape_compiles_nothing_before_it_is_trained(caplog):
    with jax.log_compiles():
        maps = stack([init_map(generator(k), 17, (13, 11)) for k in range(3)])
        begun(Optimizer(name="adam"), unstack(maps)[1])
    assert "Compiling" not in caplog.text


def test_streams_of_a_seed_differ_and_precisions_share_their_numbers():
    first, second = (init_map(generator(5, k), 3, (4,), dtype=np.float64) for k in (0, 1))
    again = init_map(generator(5), 3, (4,), dtype=np.float32)
    assert np.all(np.asarray(first.net.weights[0]) != second.net.weights[0])
    np.testing.assert_allclose(first.net.weights[0], again.net.weights[0], rtol=1e-6)
