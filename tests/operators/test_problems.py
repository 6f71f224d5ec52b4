"""Problems: what is given is tried out at once; forms and operators are what the formulas say."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core.maps import init_map, stack
from piefs.core.networks import generator
from piefs.errors import InputError
from piefs.operators import Box, EigenProblem, Gaussian, PointCloud, Sphere, known, lebesgue
from piefs.operators.problem import tensor
from piefs.operators.trial import (
    drift,
    forms,
    n_units,
    operator,
    outputs,
    units,
    with_gradients,
)

pytestmark = pytest.mark.usefixtures("float64")

SQUARE = Box([0, 0], [1, 1])


def bent(x):
    """A metric that varies."""
    one = 1 + 0.3 * jnp.sin(x[:, 0])
    return jnp.stack(
        [jnp.stack([one, x[:, 1]], axis=1), jnp.stack([0 * one, 1 + x[:, 0] * x[:, 1]], axis=1)],
        axis=1,
    )


@pytest.fixture(scope="module")
def maps(float64):
    keys = map(generator, range(3))
    return stack([init_map(key, 2, (5, 4), "tanh") for key in keys])


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"boundary": "robin"}, "choose one of natural, dirichlet, periodic"),
        ({"potential": lambda x: x}, r"potential\(x\) must have shape \(8,\)"),
        ({"potential": lambda x: jnp.log(x[:, 0] - 2)}, "not finite"),
        ({"density": lambda x: x[:, 0] - 1}, "must not be negative"),
        ({"metric": np.eye(3)}, "2 × 2 matrix"),
        ({"envelope": lambda x: x}, r"envelope\(x\)"),
        ({"embedding": lambda x: x[:, 0]}, r"embedding\(x\)"),
        ({"domain": "square"}, "domain must be one of"),
        ({"domain": Sphere(3), "boundary": "dirichlet"}, "no boundary"),
        ({"domain": PointCloud(np.ones((9, 2))), "density": lebesgue}, "its own density"),
    ],
)
def test_bad_problems_are_refused_before_any_work(keywords, reason):
    with pytest.raises(InputError, match=reason):
        EigenProblem(**{"domain": SQUARE} | keywords)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match="no problem 'sqare'; there are interval, dirichlet-sq"):
        known("sqare")


def test_functions_vanish_on_a_dirichlet_boundary_and_are_periodic_on_a_torus(maps):
    edge = jnp.array([[0.0, 0.3], [0.6, 1.0]])
    fixed = EigenProblem(SQUARE, boundary="dirichlet")
    np.testing.assert_allclose(units(fixed, maps, edge), 0, atol=1e-14)
    torus = EigenProblem(SQUARE, boundary="periodic")
    wide = stack([init_map(generator(1), 4, (5,), "sin")])
    x = jnp.array([[0.2, 0.7]])
    np.testing.assert_allclose(units(torus, wide, x), units(torus, wide, x + 1), atol=1e-12)


def test_outputs_and_their_gradients_agree_with_automatic_differentiation(maps):
    problem = EigenProblem(SQUARE, boundary="dirichlet", envelope=lambda x: jnp.exp(-x[:, 0]))
    x = jnp.asarray(SQUARE.sobol(0)(8).x)

    def plain(row):
        inputs, factor = problem.inputs(row[None]), problem.factor(row[None])
        return jnp.stack([factor[0] * maps_k(inputs)[0] for maps_k in unstacked])

    unstacked = [jax.tree.map(lambda a, k=k: a[k], maps) for k in range(3)]
    value, gradient = jax.jit(partial(outputs, problem))(maps, x)
    np.testing.assert_allclose(value, jax.jit(jax.vmap(plain))(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, jax.jit(jax.vmap(jax.jacrev(plain)))(x), rtol=1e-10)


def test_outputs_lie_in_the_span_of_the_units(maps):
    problem = EigenProblem(SQUARE)
    x = jnp.asarray(SQUARE.sobol(0)(64).x)
    both = jax.jit(lambda x: (units(problem, maps, x), outputs(problem, maps, x)[0]))
    basis, wanted = map(np.asarray, both(x))
    assert basis.shape == (64, n_units(maps))
    fitted = basis @ np.linalg.lstsq(basis, wanted, rcond=None)[0]
    np.testing.assert_allclose(fitted, wanted, atol=1e-10)


def test_forms_are_the_sums_that_they_stand_for(maps):
    problem = EigenProblem(SQUARE, metric=bent, potential=lambda x: x[:, 0])
    x = jnp.asarray(SQUARE.sobol(0)(16).x)
    weight = jnp.linspace(1, 2, 16)
    value, gradient = jax.jit(lambda x: with_gradients(lambda x: units(problem, maps, x), x))(x)
    dirichlet, gram = jax.jit(partial(forms, problem))(x, weight, value, gradient)
    flux = np.einsum("nij,nmj->nmi", bent(x), gradient)
    expected = np.einsum("n,nai,nbi->ab", weight, flux, flux)
    expected += np.einsum("n,na,nb->ab", weight * x[:, 0], value, value)
    np.testing.assert_allclose(dirichlet, expected, rtol=1e-10)
    np.testing.assert_allclose(gram, np.einsum("n,na,nb->ab", weight, value, value), rtol=1e-10)


def test_weights_turn_the_reference_measure_into_the_problem_s():
    problem = EigenProblem(Gaussian(1), density=lambda x: jnp.exp(-2 * x[:, 0] ** 2))
    x, weight = problem.measured(problem.domain.quadrature(60))
    variance = weight @ x[:, 0] ** 2 / weight.sum()
    assert variance == pytest.approx(0.25, rel=1e-8)


def test_operator_is_the_divergence_form_by_finite_differences():
    problem = EigenProblem(
        SQUARE, metric=bent, density=lambda x: 1 + x[:, 1] ** 2, potential=lambda x: x[:, 0]
    )
    phi = lambda x: jnp.sin(2 * x[:, :1]) * jnp.exp(x[:, 1:])  # noqa: E731
    x, h = np.array([[0.3, 0.6]]), 1e-4

    @jax.jit
    def flux(x):
        m = tensor(problem, x)
        gradient = with_gradients(phi, x)[1][:, 0]
        return problem.density(x)[:, None] * jnp.einsum("nij,nj->ni", m, gradient)

    steps = h * np.eye(2)
    ahead, behind = ([np.asarray(flux(x + s * step))[0] for step in steps] for s in (1, -1))
    divergence = sum((ahead[i][i] - behind[i][i]) / (2 * h) for i in range(2))
    expected = -divergence / problem.density(x)[0] + x[0, 0] * phi(x)[0, 0]
    found = jax.jit(partial(operator, problem, phi))(x)[1]
    assert float(found[0, 0]) == pytest.approx(float(expected), rel=1e-6)


def test_on_the_sphere_the_operator_is_the_sphere_s_own():
    problem = known("sphere").problem
    x = jnp.asarray(problem.domain.sobol(0)(16).x)
    harmonic = lambda x: (x[:, 0] * x[:, 1])[:, None]  # noqa: E731
    value, image = jax.jit(partial(operator, problem, harmonic))(x)
    np.testing.assert_allclose(image, 6 * value, atol=1e-10)


def test_constant_metrics_have_no_divergence_and_numbers_are_multiples_of_the_identity():
    x = jnp.ones((2, 2))
    problem = EigenProblem(SQUARE, metric=3.0)
    np.testing.assert_allclose(tensor(problem, x), 9 * np.broadcast_to(np.eye(2), (2, 2, 2)))
    np.testing.assert_array_equal(drift(problem, x), 0)
