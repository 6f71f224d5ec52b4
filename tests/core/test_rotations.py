import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from piefs.core.rotations import Rotation, cos_sin, make_rotation, rotate, rotate_pair

pytestmark = pytest.mark.usefixtures("float64")

DIMENSIONS = [1, 2, 3, 4, 5, 8]
PAPERS = ("trotter", "chain")


@partial(jax.jit, static_argnames="name")
def apply(name, omega, v):
    return rotate(make_rotation(name), omega, v)


def givens(d, j, angle):
    """R_j as a dense matrix in the plane (j, j + 1)."""
    matrix = np.eye(d)
    c, s = math.cos(angle), math.sin(angle)
    matrix[j : j + 2, j : j + 2] = [[c, -s], [s, c]]
    return matrix


def order(name, d):
    """Which R_j acts first, second, …"""
    pairs = list(range(d - 1))
    return pairs if name == "chain" else pairs[0::2] + pairs[1::2]


def naive_matrix(name, omega):
    d = len(omega) + 1
    matrix = np.eye(d)
    for j in order(name, d):
        matrix = givens(d, j, omega[j]) @ matrix
    return matrix


def matrix_of(name, omega):
    """The columns Ue_0, Ue_1, …"""
    d = len(omega) + 1
    return np.asarray(apply(name, np.tile(omega, (d, 1)), np.eye(d))).T


def test_rotate_pair_turns_the_first_axis_towards_the_second():
    a, b = rotate_pair(jnp.array(math.pi / 2), jnp.array(1.0), jnp.array(0.0))
    np.testing.assert_allclose([a, b], [0, 1], atol=1e-15)


ANGLES = np.concatenate([np.linspace(-np.pi, np.pi, 10001), np.linspace(-40, 40, 10001)])


def test_fast_cosine_and_sine_are_those_of_double_precision():
    omega = ANGLES.astype(np.float32)
    c, s = map(np.asarray, jax.jit(cos_sin)(omega))
    assert c.dtype == s.dtype == np.float32
    # 40 rad in float32 carries an error of 2e-6 of its own after division by π.
    exact = np.cos(omega.astype(float)), np.sin(omega.astype(float))
    within_pi = np.abs(omega) <= 3.1416
    for ours, theirs in zip((c, s), exact, strict=True):
        assert np.abs(ours - theirs)[within_pi].max() < 5e-7
        assert np.abs(ours - theirs).max() < 5e-6


def test_fast_rotations_are_orthogonal_to_rounding():
    c, s = (np.asarray(a, float) for a in jax.jit(cos_sin)(ANGLES.astype(np.float32)))
    assert np.abs(c**2 + s**2 - 1).max() < 4e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_of_cosine_and_sine_are_the_other_one(dtype):
    omega = ANGLES.astype(dtype)[:100]
    (c, s), (dc, ds) = jax.jvp(cos_sin, (omega,), (np.ones_like(omega),))
    np.testing.assert_array_equal(dc, -s)
    np.testing.assert_array_equal(ds, c)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("name", PAPERS)
def test_rotation_equals_the_explicit_product_of_givens_matrices(name, d, rng):
    omega, v = rng.uniform(-np.pi, np.pi, (4, d - 1)), rng.normal(size=(4, d))
    rotated = apply(name, omega, v)
    expected = [
        naive_matrix(name, angles) @ vector for angles, vector in zip(omega, v, strict=True)
    ]
    np.testing.assert_allclose(rotated, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("d", "same"), [(2, True), (3, True), (4, False), (5, False)])
def test_trotter_and_chain_part_ways_from_four_dimensions_on(d, same, rng):
    omega = rng.uniform(-np.pi, np.pi, d - 1)
    trotter, chain = (matrix_of(name, omega) for name in ("trotter", "chain"))
    assert np.allclose(trotter, chain) == same


@pytest.mark.parametrize("name", PAPERS)
@given(seed=st.integers(0, 2**32 - 1), d=st.sampled_from([3, 8]))
def test_rotation_is_orthogonal_of_determinant_one(name, seed, d):
    omega = np.random.default_rng(seed).uniform(-np.pi, np.pi, d - 1)
    matrix = matrix_of(name, omega)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(d), atol=1e-12)
    assert np.linalg.det(matrix) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", PAPERS)
@given(seed=st.integers(0, 2**32 - 1), d=st.sampled_from([3, 8]))
def test_rotation_preserves_norms(name, seed, d):
    rng = np.random.default_rng(seed)
    omega, v = rng.uniform(-np.pi, np.pi, (4, d - 1)), rng.normal(size=(4, d))
    rotated = apply(name, omega, v)
    np.testing.assert_allclose(
        np.linalg.norm(rotated, axis=1), np.linalg.norm(v, axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("name", PAPERS)
def test_zero_angles_rotate_nothing(name, rng):
    v = rng.normal(size=(4, 5))
    np.testing.assert_array_equal(apply(name, np.zeros((4, 4)), v), v)


@pytest.mark.parametrize("d", [5, 6])
@pytest.mark.parametrize("name", PAPERS)
def test_gradient_in_the_angles_equals_finite_differences(name, d, rng):
    omega, v, c = (jnp.asarray(rng.normal(size=(3, m))) for m in (d - 1, d, d))
    value = jax.jit(lambda omega, v: jnp.sum(c * rotate(make_rotation(name), omega, v)))
    check_grads(value, (omega, v), order=1, modes=("rev",), atol=1e-6, rtol=1e-6)
    assert np.all(jax.grad(value)(omega, v) != 0)


def test_trotter_has_a_depth_independent_of_the_dimension(equations):
    trotter = partial(rotate, make_rotation("trotter"))

    def operations(d):
        args = jnp.zeros((3, d - 1)), jnp.zeros((3, d))
        return [e.primitive.name for e in equations(trotter, *args)]

    assert operations(6) == operations(60)
    assert operations(7) == operations(61)
    assert not {"scan", "while"} & set(operations(60))


@pytest.mark.parametrize("name", PAPERS)
def test_rotation_never_forms_a_d_by_d_matrix(name, equations):
    args = jnp.zeros((3, 11)), jnp.zeros((3, 12))
    performed = equations(partial(rotate, make_rotation(name)), *args)
    assert max(np.prod(v.aval.shape) for e in performed for v in e.outvars) <= 3 * 12


@pytest.mark.parametrize("name", PAPERS)
def test_family_fulfils_the_protocol_with_one_angle_for_each_adjacent_pair(name):
    assert isinstance(make_rotation(name), Rotation)
    assert [make_rotation(name).n_parameters(d) for d in (1, 2, 784)] == [0, 1, 783]
