"""Every rotation family keeps the promises of the protocol: orthogonal, det +1, never stuck."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import special_ortho_group

from piefs.core.rotations import FAMILIES, Rotation, anchors, make_rotation, rotate

pytestmark = pytest.mark.usefixtures("float64")

SIZED = [*((name, None) for name in FAMILIES), ("butterfly", 2), ("cayley", 4)]


@pytest.fixture(params=SIZED, ids=str, scope="module")
def family(request):
    return make_rotation(*request.param)


@partial(jax.jit, static_argnames=("family", "d"))
def _matrices(family, d, outputs):
    (parameters,) = family.squash((outputs,))
    rows = jax.vmap(lambda p: rotate(family, p[None], jnp.eye(d)))(parameters)
    return rows.transpose(0, 2, 1)


@pytest.fixture(scope="module")
def matrices():
    """U for each row of a network's outputs, shape (n, d, d)."""
    return lambda family, d, outputs: np.asarray(_matrices(family, d, outputs))


@pytest.mark.parametrize("d", [2, 5])
def test_every_member_is_orthogonal_of_determinant_one(family, d, rng, matrices):
    outputs = rng.normal(size=(4, family.n_parameters(d))) * np.array([[0.1], [1], [5], [100]])
    for matrix in matrices(family, d, outputs):
        np.testing.assert_allclose(matrix.T @ matrix, np.eye(d), atol=1e-12)
        assert np.linalg.det(matrix) == pytest.approx(1, abs=1e-12)


def test_single_precision_stays_single_and_a_family_holds_no_numbers(family, rng):
    shapes = ((2, family.n_parameters(5)), (2, 5))
    parameters, v = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes)
    rotated = jax.eval_shape(lambda p, v: rotate(family, *family.squash((p,)), v), parameters, v)
    assert rotated.dtype == jnp.float32
    assert jax.tree.leaves(family) == []


@pytest.mark.parametrize(("d", "n"), [(2, 1), (5, 4)])
def test_anchors_are_orthonormal(d, n):
    found = anchors(d, n)
    np.testing.assert_allclose(found @ found.T, np.eye(n), atol=1e-12)


@pytest.mark.parametrize(("d", "depth", "rank"), [(2, 4, 1), (4, 4, 2), (9, 4, 4), (9, 3, 3)])
def test_the_rank_is_as_asked_for_and_at_most_half_the_features(d, depth, rank):
    assert make_rotation("cayley", depth).n_parameters(d) == 2 * rank * d


def test_family_begins_at_the_identity_and_can_leave_it(family, rng, matrices):
    d = 5
    zeros = np.zeros((4, family.n_parameters(d)))
    np.testing.assert_allclose(matrices(family, d, zeros)[0], np.eye(d), atol=1e-12)
    aim, v = rng.normal(size=(4, d)), rng.normal(size=(4, d))

    def score(outputs):
        (parameters,) = family.squash((outputs,))
        return jnp.sum(aim * rotate(family, parameters, v))

    slope = np.asarray(jax.jit(jax.grad(score))(zeros))
    assert np.linalg.norm(slope) > 0.1
    assert np.mean(np.abs(slope) > 1e-9) >= 0.4  # of a pair p, q one may begin flat


def test_slopes_in_parameters_and_vectors_equal_finite_differences(family, rng):
    d = 5
    sizes = (family.n_parameters(d), d, d)
    outputs, v, c = (jnp.asarray(rng.normal(size=(2, m))) for m in sizes)

    @jax.jit
    def value(outputs, v):
        (parameters,) = family.squash((outputs,))
        return jnp.sum(c * rotate(family, parameters, v))

    slopes = jax.jit(jax.grad(value, argnums=(0, 1)))(outputs, v)
    ways = [jnp.asarray(rng.normal(size=a.shape)) for a in (outputs, v)]
    along = sum(jnp.sum(slope * way) for slope, way in zip(slopes, ways, strict=True))
    ahead, behind = (
        value(*(a + s * 1e-5 * way for a, way in zip((outputs, v), ways, strict=True)))
        for s in (1, -1)
    )
    assert float(along) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", ["chain", "butterfly", "cayley"])
def test_one_row_of_parameters_serves_all_vectors(name, rng):
    family, d = make_rotation(name), 5
    parameters, v = rng.normal(size=(1, family.n_parameters(d))), rng.normal(size=(3, d))
    apply = jax.jit(lambda p, v: rotate(family, p, v))
    repeated = apply(np.repeat(parameters, 3, axis=0), v)
    np.testing.assert_allclose(apply(parameters, v), repeated, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_family_forms_a_d_by_d_matrix(name, equations):
    d, family = 64, make_rotation(name)
    args = jnp.zeros((2, family.n_parameters(d))), jnp.zeros((2, d))
    performed = equations(lambda p, v: rotate(family, p, v), *args)
    largest = max(np.prod(v.aval.shape) for e in performed for v in e.outvars)
    assert largest <= 2 * max(family.n_parameters(d), d)


def test_families_fulfil_the_protocol():
    assert all(issubclass(family, Rotation) for family in FAMILIES.values())


@pytest.mark.parametrize(("d", "n_layers"), [(2, 1), (8, 3), (9, 4), (784, 10)])
def test_butterfly_has_a_layer_for_each_power_of_two_below_the_dimension(d, n_layers):
    family = make_rotation("butterfly")
    layers = family.split(np.zeros((1, family.n_parameters(d))), d)
    assert len(layers) == n_layers
    assert all(0 < layer.shape[1] <= d // 2 for layer in layers)


def test_butterfly_lets_every_component_reach_every_other_where_a_sweep_cannot(rng, matrices):
    def reached(name):
        family = make_rotation(name)
        outputs = rng.normal(size=(1, family.n_parameters(8)))
        return np.mean(np.abs(matrices(family, 8, outputs)[0]) > 1e-9)

    assert reached("butterfly") == 1
    assert reached("trotter") < 0.6


def test_cayley_is_that_of_its_generator(rng, matrices):
    d, r = 7, 2
    outputs = rng.normal(size=(1, 2 * r * d))
    w = outputs.reshape(2 * r, d) / np.sqrt(d)
    w[1::2] += anchors(d, r)
    s = sum(np.outer(p, q) - np.outer(q, p) for p, q in zip(w[::2], w[1::2], strict=True))
    cayley = np.linalg.solve(np.eye(d) - s / 2, np.eye(d) + s / 2)
    ours = matrices(make_rotation("cayley", r), d, outputs)[0]
    np.testing.assert_allclose(ours, cayley, atol=1e-12)


def test_repeated_butterflies_find_any_rotation_and_a_single_sweep_does_not(rng):
    d = 4
    target = special_ortho_group.rvs(d, random_state=0)

    def error_after(family, n_steps=400):
        def error(outputs):
            (parameters,) = family.squash((outputs[None],))
            return jnp.sum((rotate(family, parameters, jnp.eye(d)).T - target) ** 2)

        def step(_, outputs):
            return outputs - 0.02 * jax.grad(error)(outputs)

        start = 0.1 * rng.normal(size=family.n_parameters(d))
        return float(jax.jit(lambda o: error(jax.lax.fori_loop(0, n_steps, step, o)))(start))

    assert error_after(make_rotation("butterfly", 2)) < 1e-3
    assert error_after(make_rotation("trotter")) > 0.1
