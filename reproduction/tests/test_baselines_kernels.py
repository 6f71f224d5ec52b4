"""The kernels of NeuralEF."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from reproduction.baselines.eigenfunctions import RBF, ArcCosine, median_distance


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
