import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core import gradients
from piefs.core.gradients import DenseField, FactoredField
from piefs.core.maps import ScalarMap

pytestmark = pytest.mark.usefixtures("float64")

N = 11

# Compiled whole; operation by operation, each would be a program of its own.
deal = jax.jit(gradients.deal, static_argnums=1)
gather = jax.jit(gradients.gather)
dot = jax.jit(gradients.dot)
dense = jax.jit(lambda f: f.dense())
parts_of = jax.jit(lambda f, stride: f.parts(stride), static_argnums=1)
transformed_by = jax.jit(lambda f, matrix: f.mapped_by(lambda rows: rows @ matrix.T))


def field(rng, d, h=None):
    if h is None:
        return DenseField(jnp.asarray(rng.normal(size=(N, d))))
    return FactoredField(jnp.asarray(rng.normal(size=(N, h))), jnp.asarray(rng.normal(size=(d, h))))


def naive_dot(f, g):
    return [
        sum(float(a) * float(b) for a, b in zip(v, w, strict=True))
        for v, w in zip(np.asarray(dense(f)), np.asarray(dense(g)), strict=True)
    ]


def shapes(performed):
    return {v.aval.shape for e in performed for v in e.outvars}


def test_dense_field_is_u_times_the_transposed_frame(rng):
    f = field(rng, d=6, h=4)
    u, frame = np.asarray(f.u), np.asarray(f.frame)
    expected = [[sum(u[i] * frame[a]) for a in range(6)] for i in range(N)]
    np.testing.assert_allclose(dense(f), expected, rtol=1e-10, atol=1e-13)


def test_dense_field_in_one_piece_is_dense_already(rng):
    f = field(rng, d=6)
    assert f.dense() is f.dealt[0]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 6, 7])
def test_gathering_undoes_dealing(d, stride, rng):
    a = rng.normal(size=(N, d))
    parts = deal(a, stride)
    np.testing.assert_array_equal(parts[0], a[:, ::stride])
    assert [part.shape[1] for part in parts] == [len(range(i, d, stride)) for i in range(stride)]
    np.testing.assert_array_equal(gather(parts), a)


@pytest.mark.parametrize("h", [None, 4], ids=["dense", "factored"])
def test_parts_are_the_components_dealt_out(h, rng):
    f = field(rng, 7, h)
    for part, expected in zip(parts_of(f, 3), deal(dense(f), 3), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)


@pytest.mark.parametrize(("stride_f", "stride_g"), [(2, 2), (2, 3), (1, 2)])
def test_dot_of_fields_dealt_out_differently(stride_f, stride_g, rng):
    f, g = field(rng, 7), field(rng, 7)
    dealt = DenseField(*parts_of(f, stride_f)), DenseField(*parts_of(g, stride_g))
    assert [one.stride for one in dealt] == [stride_f, stride_g]
    np.testing.assert_allclose(dot(*dealt), naive_dot(f, g), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("d", "h_f", "h_g"),
    [(3, 5, 5), (5, 5, 5), (9, 4, 4), (9, 4, 6), (1, 4, 4), (5, 6, 4), (4, None, 6), (9, 4, None)],
)
def test_dot_equals_the_dense_dot_on_both_sides_of_the_switch(d, h_f, h_g, rng):
    f, g = field(rng, d, h_f), field(rng, d, h_g)
    np.testing.assert_allclose(dot(f, g), naive_dot(f, g), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dot(g, f), naive_dot(f, g), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("h", [None, 4, 8], ids=["dense", "narrow", "wide"])
@pytest.mark.parametrize("d_out", [2, 6, 9])
def test_shared_matrix_acts_on_every_vector(d_out, h, rng):
    f, matrix = field(rng, 6, h), rng.normal(size=(d_out, 6))
    transformed = transformed_by(f, matrix)
    expected = np.stack([matrix @ v for v in np.asarray(dense(f))])
    np.testing.assert_allclose(dense(transformed), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dot(transformed, transformed), (expected**2).sum(1), rtol=1e-10)


def test_shared_matrix_keeps_the_field_factored(rng):
    f = field(rng, d=9, h=4)
    transformed = f.mapped_by(lambda rows: rows @ jnp.eye(9))
    assert transformed.u is f.u
    assert transformed.frame.shape == (9, 4)


def test_gram_trick_forms_no_n_by_d_array_when_the_inputs_outnumber_the_hidden_units(
    rng, equations
):
    f, g = field(rng, d=13, h=4), field(rng, d=13, h=4)
    loss_gradient = jax.grad(lambda f, g: jnp.sum(dot(f, g)), argnums=(0, 1))
    for function in (gradients.dot, loss_gradient):
        formed = shapes(equations(function, f, g))
        assert (4, 4) in formed
        assert (N, 13) not in formed
        assert (13, N) not in formed


def test_few_inputs_use_the_dense_dot(rng, equations):
    f = field(rng, d=3, h=5)
    formed = shapes(equations(gradients.dot, f, f))
    assert (N, 3) in formed
    assert (5, 5) not in formed


def test_descending_a_maps_energy_forms_no_n_by_d_array(rng, network, equations):
    phi = ScalarMap(network(rng, (13, 4, 5, 1), "tanh"))
    x = jnp.asarray(rng.normal(size=(N, 13)))

    def energy(phi, x):
        _, gradient = phi.value_and_gradient(x)
        return jnp.mean(dot(gradient, gradient))

    formed = shapes(equations(jax.grad(energy), phi, x))
    assert (N, 4) in formed
    assert (N, 13) not in formed
    assert (13, N) not in formed
