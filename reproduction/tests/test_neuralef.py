"""Kernels, the objective of NeuralEF, what it finds, and scikit-learn's own checks of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite import hermval
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from piefs.errors import InputError
from reproduction.baselines import NeuralEF
from reproduction.baselines.eigenfunctions import (
    RBF,
    ArcCosine,
    eigenvalue_estimates,
    median_distance,
    normalized,
    objective,
)


def kernel_matrix(kernel, x):
    return np.asarray(jax.jit(lambda kernel, x: kernel(x))(kernel, jnp.asarray(x, jnp.float32)))


@pytest.fixture
def x(rng):
    return rng.normal(size=(12, 5)).astype(np.float32)


def relu_covariance(x, depth, n_units=200_000):
    """Monte Carlo over random ReLU units: 2 E h h′, layer upon layer."""
    rng = np.random.default_rng(1)
    covariance = x.astype(np.float64) @ x.T / x.shape[1]
    for _ in range(depth):
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        h = np.maximum(root @ rng.normal(size=(len(x), n_units)), 0)
        covariance = 2 * h @ h.T / n_units
    return covariance


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_arc_cosine_kernel_is_the_covariance_of_random_relu_networks(x, depth):
    sampled, largest = relu_covariance(x, depth), np.sum(x**2, axis=1).max() / x.shape[1]
    assert np.abs(kernel_matrix(ArcCosine(depth), x) - sampled).max() < 0.03 * largest
    assert np.abs(kernel_matrix(ArcCosine(depth + 1), x) - sampled).max() > 0.06 * largest


def test_arc_cosine_kernel_keeps_lengths_and_knows_its_closed_values():
    matrix = kernel_matrix(ArcCosine(1), [[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]])
    np.testing.assert_allclose(np.diag(matrix), [0.5, 2, 4.5], rtol=1e-6)
    assert matrix[0, 1] == pytest.approx(1 / np.pi, rel=1e-6)  # a right angle: |x||x′|/(π d)
    assert matrix[0, 2] == pytest.approx(0, abs=1e-6)  # opposite directions share no active unit


def test_arc_cosine_kernel_grows_with_the_square_of_the_inputs(x):
    kernel = ArcCosine(2)
    np.testing.assert_allclose(
        kernel_matrix(kernel, 3 * x), 9 * kernel_matrix(kernel, x), rtol=1e-4
    )


def test_arc_cosine_kernel_of_a_black_image_is_zero(x):
    x[3] = 0
    matrix = kernel_matrix(ArcCosine(3), x)
    assert np.isfinite(matrix).all()
    assert not matrix[3].any()
    assert not matrix[:, 3].any()


@pytest.mark.parametrize("offset", [0.0, 500.0])
def test_rbf_kernel_is_the_naive_formula_however_far_from_the_origin(x, offset):
    expected = np.exp(-(cdist(x, x) ** 2) / (2 * 1.7**2))
    kernel = RBF(jnp.float32(1.7))
    np.testing.assert_allclose(kernel_matrix(kernel, x + offset), expected, atol=1e-3)


def test_median_distance_is_the_median_over_pairs_and_fixed_by_the_seed(rng):
    assert median_distance(np.array([[0.0], [1.0], [3.0]]), 0) == 2
    many = rng.normal(size=(3000, 2))
    assert median_distance(many, 3) == median_distance(many, 3) != median_distance(many, 4)
    assert median_distance(many, 3) == pytest.approx(2 * np.log(2) ** 0.5, rel=0.05)


def test_median_distance_is_positive_where_rows_coincide():
    assert median_distance(np.ones((5, 2)), 0) == 1
    assert median_distance(np.array([[0.0]] * 9 + [[4.0]]), 0) > 0


SMALL = {"n_components": 3, "hidden": (32, 32), "random_state": 0}


@pytest.fixture(scope="module")
def matrix():
    """A positive matrix over 20 rows with eigenvalues 20 · (0.9, 0.6, 0.4, 0.2, 0, …)."""
    vectors, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))
    values = 20 * np.r_[0.9, 0.6, 0.4, 0.2, np.zeros(16)]
    return jnp.asarray((vectors * values) @ vectors.T, jnp.float32), vectors


@pytest.fixture
def psi(rng):
    return normalized(jnp.asarray(rng.normal(size=(20, 3)), jnp.float32))[0]


def test_normalised_outputs_have_the_sum_of_squares_of_the_batch_size(psi):
    np.testing.assert_allclose(np.sum(psi**2, axis=0), 20, rtol=1e-5)


def test_objective_is_the_published_sum(psi, matrix):
    kernel, _ = matrix
    r = np.asarray(psi.T @ kernel @ psi) / 20**2
    expected = sum(r[j, j] - sum(r[i, j] ** 2 / r[i, i] for i in range(j)) for j in range(3))
    assert float(objective(psi, kernel)) == pytest.approx(expected, rel=1e-5)


def test_a_function_feels_the_penalties_of_earlier_ones_only(psi, matrix):
    kernel, _ = matrix
    image = np.asarray(kernel @ psi) / 20**2
    r = np.asarray(psi).T @ image
    for j, gradient in enumerate(np.asarray(jax.grad(objective)(psi, kernel)).T):
        deflated = image[:, j] - sum(r[i, j] / r[i, i] * image[:, i] for i in range(j))
        np.testing.assert_allclose(gradient, 2 * deflated, atol=1e-6)


@pytest.mark.slow
def test_ascent_of_the_objective_ends_at_the_leading_eigenvectors_in_order(psi, matrix):
    kernel, vectors = matrix
    gradient = jax.grad(lambda h: objective(normalized(h)[0], kernel))
    h = jax.lax.fori_loop(0, 3000, lambda _, h: h + gradient(h), psi)
    overlap = np.asarray(normalized(h)[0]).T @ vectors[:, :3] / 20**0.5
    np.testing.assert_allclose(np.abs(overlap), np.eye(3), atol=0.02)


def test_eigenvalue_estimates_pair_different_rows_only(psi, matrix):
    kernel = np.asarray(matrix[0])
    pairs = [(a, b) for a in range(20) for b in range(20) if a != b]
    expected = np.mean([kernel[a, b] * psi[a] * psi[b] for a, b in pairs], axis=0)
    np.testing.assert_allclose(eigenvalue_estimates(psi, matrix[0]), expected, atol=1e-5)


def gaussian_spectrum(x, deviation, bandwidth, n):
    """Eigenvalues and eigenfunctions at x of exp(−(x − x′)²/2ℓ²) under N(0, deviation²)."""
    a, b = 1 / (4 * deviation**2), 1 / (2 * bandwidth**2)
    c = np.sqrt(a**2 + 2 * a * b)
    values = np.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** np.arange(n)
    modes = [np.exp((a - c) * x**2) * hermval(np.sqrt(2 * c) * x, row) for row in np.eye(n)]
    return values, np.stack(modes, axis=1)


def correlations(psi, modes):
    """|⟨ψ_j, mode_j⟩| over the rows, both of unit length."""
    return np.abs(
        np.sum(psi * modes, axis=0) / (np.linalg.norm(psi, axis=0) * np.linalg.norm(modes, axis=0))
    )


@pytest.mark.slow
def test_on_a_line_it_finds_the_hermite_functions_of_the_gaussian_kernel():
    x = np.random.default_rng(0).normal(size=(10_000, 1))
    model = NeuralEF(bandwidth=1.0, steps=1500, learning_rate=3e-3, **SMALL).fit(x)
    values, modes = gaussian_spectrum(x[:, 0], 1.0, 1.0, 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=0.05)
    assert correlations(model.transform(x), modes).min() > 0.98
    np.testing.assert_allclose(np.mean(model.transform(x) ** 2, axis=0), 1, atol=0.05)


@pytest.mark.slow
def test_in_the_plane_it_finds_products_of_hermite_functions():
    deviations, bandwidth = (1.0, 0.5), 1.2
    x = np.random.default_rng(0).normal(size=(10_000, 2)) * deviations
    model = NeuralEF(bandwidth=bandwidth, steps=1500, learning_rate=3e-3, **SMALL).fit(x)
    axes = [gaussian_spectrum(x[:, i], deviations[i], bandwidth, 3) for i in range(2)]
    values = np.outer(axes[0][0], axes[1][0]).ravel()
    modes = (axes[0][1][:, :, None] * axes[1][1][:, None, :]).reshape(len(x), -1)
    leading = np.argsort(-values)[:3]
    np.testing.assert_allclose(model.eigenvalues_, values[leading], rtol=0.05)
    assert correlations(model.transform(x), modes[:, leading]).min() > 0.98


@pytest.mark.slow
def test_on_images_it_finds_the_eigenvectors_of_the_arc_cosine_kernel():
    x = (load_digits().data / 16).astype(np.float32)
    keywords = SMALL | {"n_components": 2, "steps": 600, "learning_rate": 3e-3}
    model = NeuralEF(kernel="nngp", **keywords).fit(x)
    values, vectors = eigh(
        np.asarray(ArcCosine(3)(jnp.asarray(x))), subset_by_index=(len(x) - 2, len(x) - 1)
    )
    np.testing.assert_allclose(model.eigenvalues_, values[::-1] / len(x), rtol=0.1)
    assert correlations(model.transform(x), vectors[:, ::-1]).min() > 0.98


QUICK = {"n_components": 2, "hidden": (8,), "steps": 30, "batch_size": 32}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(100, 3))


@pytest.fixture(scope="module")
def quick(rows):
    return NeuralEF(random_state=0, **QUICK).fit(rows)


def test_a_row_is_transformed_alone_as_among_others(rows, quick):
    together = quick.transform(rows)
    assert together.shape == (100, 2)
    assert together.dtype == np.float32
    np.testing.assert_allclose(quick.transform(rows[7:8]), together[7:8], rtol=1e-5)


def test_the_seed_decides_the_functions(rows, quick):
    again, other = (NeuralEF(random_state=s, **QUICK).fit(rows) for s in (0, 1))
    np.testing.assert_array_equal(quick.transform(rows), again.transform(rows))
    np.testing.assert_array_equal(quick.eigenvalues_, again.eigenvalues_)
    assert not np.allclose(quick.transform(rows), other.transform(rows))


def test_double_precision_in_the_caller_changes_nothing(rows, quick):
    with jax.enable_x64(True):
        inside = clone(quick).fit(rows).transform(rows)
    np.testing.assert_array_equal(inside, quick.transform(rows))


def test_units_and_origin_of_a_table_do_not_matter(rows, quick):
    elsewhere = clone(quick).fit(1000 * rows + 5000)
    assert elsewhere.bandwidth_ == pytest.approx(1000 * quick.bandwidth_, rel=1e-3)
    np.testing.assert_allclose(
        elsewhere.transform(1000 * rows + 5000), quick.transform(rows), atol=0.02
    )


def test_bandwidth_is_the_median_distance_unless_given(rows, quick):
    pairs = np.linalg.norm(rows[:, None] - rows[None], axis=2)[np.triu_indices(100, 1)]
    assert quick.bandwidth_ == pytest.approx(np.median(pairs), rel=1e-5)
    assert clone(quick).set_params(bandwidth=0.3).fit(rows).bandwidth_ == 0.3


def test_features_have_names(quick):
    assert list(quick.get_feature_names_out()) == ["neuralef0", "neuralef1"]


@pytest.mark.parametrize("kernel", ["rbf", "nngp"])
def test_constant_inputs_give_finite_values(kernel):
    model = NeuralEF(kernel=kernel, random_state=0, **QUICK).fit(np.zeros((40, 1)))
    assert np.isfinite(model.transform(np.ones((2, 1)))).all()
    assert np.isfinite(model.eigenvalues_).all()


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("kernel", "cubic"),
        ("n_components", 0),
        ("steps", 0),
        ("batch_size", 1),
        ("depth", 0),
        ("bandwidth", -1.0),
        ("learning_rate", 0.0),
    ],
)
def test_keywords_that_cannot_work_are_refused_by_name(rows, keyword, value):
    with pytest.raises(InputError, match=keyword):
        NeuralEF(**{keyword: value}).fit(rows)


# Small networks: the checks are about behaviour, and each shape compiles anew.
TINY = {"n_components": 2, "hidden": (8,), "steps": 20, "batch_size": 16, "random_state": 0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([NeuralEF(**TINY)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
