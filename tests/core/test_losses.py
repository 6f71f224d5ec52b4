import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import special_ortho_group
from sklearn.metrics import log_loss

from piefs.core import losses
from piefs.core.gradients import DenseField, FactoredField, dot
from piefs.core.losses import Readout, init_readout
from piefs.core.maps import ScalarMap
from piefs.core.metric import Diag, Off
from piefs.core.networks import MLP

pytestmark = pytest.mark.usefixtures("float64")

N = 7

# As training uses them, compiled whole; operation by operation they would compile far longer.
gram_error = jax.jit(losses.gram_error)


@jax.jit
def expectation(values, weight=None):
    return losses.weighted_sum(values, jnp.ones(len(values)) if weight is None else weight).mean


@jax.jit
def gram(phi, weight=None):
    return losses.gram_sum(phi, jnp.ones(len(phi)) if weight is None else weight).mean


@jax.jit
def dirichlet_form(f, g, weight=None):
    return expectation(dot(f, g), weight)


def modified_dirichlet_form(metric, x, f, g, weight=None):
    return dirichlet_form(metric.apply(x, f), metric.apply(x, g), weight)


@jax.jit
def cross_entropy(logits, labels, weight=None):
    return expectation(losses.cross_entropy(logits, labels), weight)


def split_gram_error(phi, weight, n_rows=np.inf):
    return losses.split_gram_error(losses.half_sums(phi, weight), n_rows)


def split_row_error(phi, weight, k, n_rows=np.inf):
    return losses.split_gram_error(losses.row_half_sums(phi, weight, k), n_rows)


def field(rng, d=5, h=3):
    return FactoredField(jnp.asarray(rng.normal(size=(N, h))), jnp.asarray(rng.normal(size=(d, h))))


def counts(rng):
    """Whole-number weights, some zero, so that weighting can be compared with repetition."""
    repeats = rng.integers(0, 4, size=N)
    repeats[0] = 2
    return repeats


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# --- expectations and the Gram matrix ----------------------------------------------------------


def test_expectation_is_the_weighted_mean_over_rows(rng):
    values, weight = rng.normal(size=(N, 2)), counts(rng)
    naive = sum(w * v for w, v in zip(weight, values, strict=True)) / sum(weight)
    np.testing.assert_allclose(expectation(jnp.asarray(values), jnp.asarray(weight)), naive)
    np.testing.assert_allclose(expectation(jnp.asarray(values)), values.mean(axis=0))


def test_gram_equals_the_naive_double_loop(rng):
    phi = rng.normal(size=(N, 4))
    naive = [[sum(phi[i, a] * phi[i, b] for i in range(N)) / N for b in range(4)] for a in range(4)]
    np.testing.assert_allclose(gram(jnp.asarray(phi)), naive, rtol=1e-12)


def test_weighted_gram_equals_the_gram_of_repeated_rows(rng):
    phi, repeats = rng.normal(size=(N, 4)), counts(rng)
    weighted = gram(jnp.asarray(phi), jnp.asarray(repeats, float))
    np.testing.assert_allclose(weighted, gram(np.repeat(phi, repeats, axis=0)), rtol=1e-12)
    scaled = gram(jnp.asarray(phi), jnp.asarray(10.0 * repeats))
    np.testing.assert_allclose(scaled, weighted, rtol=1e-12)


@given(
    phi=arrays(float, (N, 3), elements=st.floats(-3, 3)),
    weight=arrays(float, N, elements=st.floats(0.1, 3)),
    seed=st.integers(0, 99),
)
def test_gram_is_symmetric_not_negative_and_knows_neither_order_nor_scale_of_weights(
    phi, weight, seed
):
    c = np.asarray(gram(phi, weight))
    np.testing.assert_allclose(c, c.T, atol=1e-12)
    assert np.linalg.eigvalsh(c)[0] > -1e-10
    order = np.random.default_rng(seed).permutation(N)
    np.testing.assert_allclose(gram(phi[order], 7 * weight[order]), c, atol=1e-10)


@given(phi=arrays(float, (N, 3), elements=st.floats(-3, 3)), seed=st.integers(0, 99))
def test_gram_error_does_not_change_when_coordinates_are_turned(phi, seed):
    turn = special_ortho_group.rvs(3, random_state=seed)
    error = float(gram_error(gram(phi)))
    assert float(gram_error(gram(phi @ turn))) == pytest.approx(error, rel=1e-9, abs=1e-9)


@given(
    logits=arrays(float, (N, 3), elements=st.floats(-9, 9)),
    shift=arrays(float, (N, 1), elements=st.floats(-50, 50)),
    labels=arrays(np.int32, N, elements=st.integers(0, 2)),
)
def test_cross_entropy_is_not_negative_and_knows_logits_up_to_a_shift_of_each_row(
    logits, shift, labels
):
    loss = float(cross_entropy(logits, labels))
    assert loss >= 0
    assert float(cross_entropy(logits + shift, labels)) == pytest.approx(loss, abs=1e-9)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_gram_error_over_the_active_block_equals_that_of_the_submatrix(k, rng):
    phi = np.where(np.arange(5) < k, rng.normal(size=(N, 5)), 0.0)
    c = phi.T @ phi / N
    naive = sum((c[a, b] - (a == b)) ** 2 for a in range(k) for b in range(k))
    traced = gram_error(jnp.asarray(c), k)
    np.testing.assert_allclose(traced, naive, rtol=1e-12)


def test_gram_error_covers_the_whole_matrix_unless_told_otherwise(rng):
    c = rng.normal(size=(4, 4))
    np.testing.assert_allclose(
        gram_error(jnp.asarray(c)), np.linalg.norm(c - np.eye(4)) ** 2, rtol=1e-12
    )


# --- remark:batch_gram, exactly: all batches from a population of three points -----------------


@pytest.fixture(scope="module")
def population():
    return np.random.default_rng(5).normal(size=(3, 2)) + 0.3


def mean_over_all_batches(statistic, population, size):
    """The exact expectation of a statistic of `size` independent draws."""
    batches = np.array(list(itertools.product(population, repeat=size)))
    return over_draws(statistic, batches).mean(axis=0)


def over_draws(statistic, batches):
    return np.asarray(jax.jit(jax.vmap(statistic))(batches))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_batch_gram_is_unbiased(population, size):
    expected = population.T @ population / 3
    np.testing.assert_allclose(
        mean_over_all_batches(gram, population, size), expected, rtol=1e-12, atol=1e-14
    )


def test_plug_in_gram_error_is_biased_by_a_multiple_of_one_over_the_batch_size(population):
    truth = np.linalg.norm(population.T @ population / 3 - np.eye(2)) ** 2
    plug_in = lambda phi: gram_error(gram(phi))  # noqa: E731
    bias = {size: mean_over_all_batches(plug_in, population, size) - truth for size in (1, 2, 4, 6)}
    variance_of_phi_phi = bias[1]
    assert variance_of_phi_phi > 0.1
    for size, value in bias.items():
        assert value == pytest.approx(variance_of_phi_phi / size, rel=1e-10)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_product_of_halves_has_the_population_value_as_its_mean(population, size):
    truth = np.linalg.norm(population.T @ population / 3 - np.eye(2)) ** 2
    error = lambda phi: split_gram_error(phi, jnp.ones(size))  # noqa: E731
    mean = mean_over_all_batches(error, population, size)
    assert mean == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_what_a_map_adds_to_the_gram_error_is_estimated_without_bias(population, size):
    c = population.T @ population / 3
    for k, truth in ((0, (c[0, 0] - 1) ** 2), (1, 2 * c[0, 1] ** 2 + (c[1, 1] - 1) ** 2)):
        seen = jnp.arange(2) <= k
        row_error = lambda phi: split_row_error(phi * seen, jnp.ones(size), k)  # noqa: E731, B023
        mean = mean_over_all_batches(row_error, population, size)
        assert mean == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("size", [2, 5])
def test_batches_drawn_without_replacement_estimate_the_error_of_all_rows_without_bias(rng, size):
    phi, k = rng.normal(size=(6, 2)), 1
    c = phi.T @ phi / 6
    row = 2 * c[0, 1] ** 2 + (c[1, 1] - 1) ** 2
    draws = phi[np.array(list(itertools.permutations(range(6), size)))]
    weight = jnp.ones(size)
    whole = over_draws(lambda draw: split_gram_error(draw, weight, 6), draws)
    of_row = over_draws(lambda draw: split_row_error(draw, weight, k, 6), draws)
    assert np.mean(whole) == pytest.approx(np.sum((c - np.eye(2)) ** 2), rel=1e-10)
    assert np.mean(of_row) == pytest.approx(row, rel=1e-10)


def test_a_map_that_peaks_on_one_row_is_the_worse_the_higher_the_peak():
    """Products of halves alone would reward it: the row is in one of the halves at most."""
    weight = jnp.ones(8)

    def mean_error(height: float, n_rows: float) -> float:
        peaks = height * np.eye(8)[:, :, None]
        return float(np.mean(over_draws(lambda phi: split_gram_error(phi, weight, n_rows), peaks)))

    assert mean_error(30.0, np.inf) < mean_error(10.0, np.inf) < 0
    assert mean_error(30.0, 8) > mean_error(10.0, 8) > 0


def test_weights_of_either_half_count_as_rows_that_are_repeated(rng):
    phi, times = rng.normal(size=(6, 3)), np.array([1, 2, 3, 2, 1, 3])
    weight, repeated = jnp.asarray(times, float), phi.repeat(times, axis=0)  # halves of six rows
    for error in map(jax.jit, (split_gram_error, lambda phi, w: split_row_error(phi, w, 2))):
        of_repeated = error(jnp.asarray(repeated), jnp.ones(12))
        assert error(jnp.asarray(phi), weight) == pytest.approx(float(of_repeated), rel=1e-10)


# --- Dirichlet forms ---------------------------------------------------------------------------


def test_dirichlet_form_equals_the_naive_sum(rng):
    f, g, weight = field(rng), field(rng), rng.uniform(size=N)
    u, v = np.asarray(f.dense()), np.asarray(g.dense())
    terms = [sum(u[i, a] * v[i, a] for a in range(5)) for i in range(N)]
    np.testing.assert_allclose(dirichlet_form(f, g), sum(terms) / N, rtol=1e-10)
    weighted = sum(w * t for w, t in zip(weight, terms, strict=True)) / sum(weight)
    np.testing.assert_allclose(dirichlet_form(f, g, jnp.asarray(weight)), weighted, rtol=1e-10)


def test_weighted_dirichlet_form_equals_that_of_repeated_rows(rng):
    f, g, repeats = field(rng), field(rng), counts(rng)
    weighted = dirichlet_form(f, g, jnp.asarray(repeats, float))
    f2, g2 = (FactoredField(np.repeat(v.u, repeats, axis=0), v.frame) for v in (f, g))
    np.testing.assert_allclose(weighted, dirichlet_form(f2, g2), rtol=1e-10)


FLOATS = st.floats(-3, 3).map(lambda value: round(value, 3))


@given(u=arrays(float, (3, N, 2), elements=FLOATS), a=FLOATS, b=FLOATS)
def test_dirichlet_form_is_symmetric_bilinear_and_not_negative(u, a, b):
    f, g, h = (DenseField(jnp.asarray(v)) for v in u)
    combined = DenseField(jnp.asarray(a * u[0] + b * u[1]))
    assert float(dirichlet_form(f, g)) == float(dirichlet_form(g, f))
    assert float(dirichlet_form(f, f)) >= 0
    np.testing.assert_allclose(
        dirichlet_form(combined, h),
        a * dirichlet_form(f, h) + b * dirichlet_form(g, h),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("d", [1, 2, 6])
def test_energy_of_a_linear_map_is_its_squared_slope(d, rng):
    slope = rng.normal(size=(d, 1))
    first, last = np.hstack([slope, -slope]), np.array([[1.0], [-1.0]])
    phi = ScalarMap(MLP((first, last), (np.zeros(2), np.array([0.4])), "relu"))
    x = jnp.asarray(rng.normal(size=(N, d)))
    value, gradient = phi.value_and_gradient(x)
    np.testing.assert_allclose(value, np.asarray(x @ slope)[:, 0] + 0.4, rtol=1e-12)
    energy = modified_dirichlet_form(Off(), x, gradient, gradient, jnp.asarray(rng.uniform(size=N)))
    np.testing.assert_allclose(energy, (slope**2).sum(), rtol=1e-12)


def test_diagonal_metric_weighs_each_partial_derivative(rng, network):
    metric, x = Diag(network(rng, (5, 4, 5))), jnp.asarray(rng.normal(size=(N, 5)))
    f, g = field(rng), field(rng)
    lam, u, v = np.exp(metric.log_scales(x)), np.asarray(f.dense()), np.asarray(g.dense())
    naive = sum(lam[i, a] ** 2 * u[i, a] * v[i, a] for i in range(N) for a in range(5)) / N
    np.testing.assert_allclose(modified_dirichlet_form(metric, x, f, g), naive, rtol=1e-10)


def test_modified_form_without_a_metric_is_the_plain_form(rng):
    f, g, x = field(rng), field(rng), jnp.zeros((N, 5))
    assert float(modified_dirichlet_form(Off(), x, f, g)) == float(dirichlet_form(f, g))


# --- readout -----------------------------------------------------------------------------------


def test_readout_is_affine_in_the_coordinates(rng):
    readout = Readout(jnp.asarray(rng.normal(size=(3, 4))), jnp.asarray(rng.normal(size=3)))
    phi = rng.normal(size=(N, 4))
    naive = [
        [
            float(readout.bias[c]) + sum(float(readout.weights[c, j]) * phi[i, j] for j in range(4))
            for c in range(3)
        ]
        for i in range(N)
    ]
    np.testing.assert_allclose(readout(jnp.asarray(phi)), naive, rtol=1e-12)


def test_fresh_readout_finds_every_class_equally_likely(rng):
    readout = init_readout(5, 4, jnp.float32)
    assert readout.weights.shape == (5, 4)
    assert readout.weights.dtype == readout.bias.dtype == jnp.float32
    logits = readout(jnp.asarray(rng.normal(size=(N, 4)), jnp.float32))
    loss = cross_entropy(logits, jnp.zeros(N, int))
    assert float(loss) == pytest.approx(math.log(5), rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_cross_entropy_equals_scikit_learns_log_loss(n_classes, rng):
    logits, labels = 3 * rng.normal(size=(N, n_classes)), rng.integers(0, n_classes, N)
    weight = rng.uniform(size=N)
    for w in (None, weight):
        ours = cross_entropy(jnp.asarray(logits), jnp.asarray(labels), w)
        theirs = log_loss(labels, softmax(logits), sample_weight=w, labels=range(n_classes))
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_binary_cross_entropy_is_the_logistic_loss_of_the_logit_difference(rng):
    logits, labels = 5 * rng.normal(size=(N, 2)), rng.integers(0, 2, N)
    margin = np.where(labels == 1, 1, -1) * (logits[:, 1] - logits[:, 0])
    expected = np.mean(np.logaddexp(0, -margin))
    ours = cross_entropy(jnp.asarray(logits), jnp.asarray(labels))
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


def test_cross_entropy_stays_finite_at_extreme_logits():
    logits = jnp.array([[1e4, -1e4], [-1e4, 1e4]])
    assert float(cross_entropy(logits, jnp.array([0, 1]))) == 0
    assert float(cross_entropy(logits, jnp.array([1, 0]))) == pytest.approx(2e4)


def test_weighted_cross_entropy_equals_that_of_repeated_rows(rng):
    logits, labels, repeats = rng.normal(size=(N, 3)), rng.integers(0, 3, N), counts(rng)
    weighted = cross_entropy(jnp.asarray(logits), jnp.asarray(labels), jnp.asarray(repeats, float))
    repeated = cross_entropy(np.repeat(logits, repeats, axis=0), np.repeat(labels, repeats))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_rows_of_label_weight_zero_count_neither_in_loss_nor_gradient(rng):
    logits, labels = rng.normal(size=(N, 3)), rng.integers(0, 3, N)
    weight = np.ones(N)
    weight[2:4] = 0
    loss_and_gradient = jax.jit(jax.value_and_grad(cross_entropy))
    loss, gradient = loss_and_gradient(jnp.asarray(logits), jnp.asarray(labels), weight)
    kept = weight > 0
    np.testing.assert_allclose(loss, cross_entropy(logits[kept], labels[kept]), rtol=1e-12)
    assert np.all(gradient[2:4] == 0)
    unlabelled = jnp.asarray(np.where(kept, labels, -1))
    other, _ = loss_and_gradient(jnp.asarray(logits), unlabelled, weight)
    assert float(other) == float(loss)


def test_batch_without_labels_costs_nothing_and_moves_nothing(rng):
    logits = jnp.asarray(rng.normal(size=(N, 3)), jnp.float32)
    labels, weight = jnp.zeros(N, int), jnp.zeros(N, jnp.float32)
    loss, gradient = jax.jit(jax.value_and_grad(cross_entropy))(logits, labels, weight)
    assert float(loss) == 0
    np.testing.assert_array_equal(gradient, np.zeros((N, 3)))


def test_readout_columns_of_inactive_coordinates_get_no_gradient(rng):
    readout = Readout(jnp.asarray(rng.normal(size=(3, 5))), jnp.zeros(3))
    phi = jnp.asarray(np.where(np.arange(5) < 2, rng.normal(size=(N, 5)), 0.0))
    labels = jnp.asarray(rng.integers(0, 3, N))
    gradient = jax.jit(jax.grad(lambda readout: cross_entropy(readout(phi), labels)))(readout)
    assert np.all(gradient.weights[:, 2:] == 0)
    assert np.all(gradient.weights[:, :2] != 0)
    moved = eqx.tree_at(lambda r: r.weights, readout, readout.weights.at[:, 2:].add(1.0))
    np.testing.assert_array_equal(moved(phi), readout(phi))
