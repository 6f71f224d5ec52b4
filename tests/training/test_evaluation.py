import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from piefs.core.maps import ScalarMap, stack
from piefs.core.metric import Diag, Off
from piefs.training import evaluation
from piefs.training.batches import Samples
from piefs.training.evaluation import (
    Columns,
    blockwise,
    coordinates_of,
    dirichlet_matrix,
    energies_of,
    log_scale_range,
    weighted_gram,
)

pytestmark = pytest.mark.usefixtures("float64")

D = 3


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_ROWS", 4)


@pytest.fixture
def maps(rng, network):
    return [ScalarMap(network(rng, (D, 5, 4, 1), "tanh")) for _ in range(3)]


def one_by_one(maps, x):
    value = jax.jit(lambda phi, row: phi(row)[0])
    return np.array([[value(phi, row[None]) for phi in maps] for row in x])


def naive_energy(phi, metric, x, weight):
    @jax.jit
    def squared_length(phi, metric, row):
        slope = jax.grad(lambda row: phi(row[None])[0])(row)
        return jnp.sum((jnp.exp(metric.log_scales(row[None])[0]) * slope) ** 2)

    return np.average([squared_length(phi, metric, row) for row in x], weights=weight)


@pytest.mark.parametrize("n", [1, 3, 4, 8, 11])
def test_blocks_change_nothing(n, rng, maps):
    x = rng.normal(size=(n, D))
    values = coordinates_of(stack(maps), x)
    assert values.shape == (n, 3)
    np.testing.assert_allclose(values, one_by_one(maps, x), rtol=1e-12)


def test_no_rows_give_no_coordinates(maps):
    assert coordinates_of(stack(maps), np.zeros((0, D))).shape == (0, 3)


@pytest.mark.parametrize(("n", "shapes"), [(11, {(4, D)}), (3, {(4, D)}), (2, {(2, D)})])
def test_blocks_of_one_table_have_one_shape(n, shapes, rng):
    seen, x = [], rng.normal(size=(n, D))
    out = blockwise(lambda block: seen.append(block.shape) or block[:, 0], x)
    np.testing.assert_array_equal(out, x[:, 0])
    assert set(seen) == shapes


@pytest.mark.parametrize("n", [1, 11])
def test_cached_columns_are_the_coordinates_of_the_frozen_maps(n, rng, maps):
    x = rng.normal(size=(n, D))
    cache = Columns(x, 4)
    np.testing.assert_array_equal(cache.values, np.zeros((n, 4)))
    for k, phi in enumerate(maps):
        cache.append(phi)
        assert cache.n_frozen == k + 1
        expected = one_by_one(maps[: k + 1], x)
        np.testing.assert_allclose(cache.values[:, : k + 1], expected, rtol=1e-12)
        assert np.all(cache.values[:, k + 1 :] == 0)


def test_cache_rebuilt_from_frozen_maps_is_identical(rng, maps):
    x = rng.normal(size=(11, D))
    grown = Columns(x, 4)
    for phi in maps:
        grown.append(phi)
    rebuilt = Columns(x, 4, maps)
    assert rebuilt.n_frozen == 3
    np.testing.assert_array_equal(rebuilt.values, grown.values)


def test_active_map_fills_the_next_column_without_being_frozen(rng, maps):
    x = rng.normal(size=(11, D))
    cache = Columns(x, 4, maps[:1])
    before = cache.values.copy()
    values = cache.with_active(maps[1])
    np.testing.assert_array_equal(values, Columns(x, 4, maps[:2]).values)
    np.testing.assert_array_equal(cache.values, before)
    assert cache.n_frozen == 1


@pytest.mark.parametrize("n", [1, 11])
@pytest.mark.parametrize("name", ["off", "diag"])
def test_energies_of_a_table_are_weighted_means_over_its_rows(name, n, rng, maps, network):
    metric = {"off": Off(), "diag": Diag(network(rng, (D, 4, D)))}[name]
    x, weight = rng.normal(size=(n, D)), rng.uniform(size=n)
    found = energies_of(stack(maps), metric, Samples(x, weight=weight))
    expected = [naive_energy(phi, metric, x, weight) for phi in maps]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    unweighted = energies_of(stack(maps), metric, Samples(x))[0]
    assert unweighted == pytest.approx(naive_energy(maps[0], metric, x, np.ones(n)), rel=1e-9)


def test_energies_of_very_many_rows_are_those_of_blocks_spread_over_them(rng, maps, monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_ROWS", 4)
    monkeypatch.setattr(evaluation, "ENERGY_ROWS", 8)
    x = rng.normal(size=(20, D))
    spread = np.concatenate([x[:4], x[12:16]])
    for measure in (energies_of, dirichlet_matrix):
        np.testing.assert_allclose(
            measure(stack(maps), Off(), Samples(x)), measure(stack(maps), Off(), Samples(spread))
        )


@pytest.mark.parametrize("n", [1, 11, 40])
def test_the_gram_matrix_is_that_of_the_coordinates(n, rng, maps, monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_ROWS", 8)
    x, weight = rng.normal(size=(n, D)), rng.uniform(size=n)
    phi = coordinates_of(stack(maps), x)
    expected = (phi.T * weight) @ phi / weight.sum()
    np.testing.assert_allclose(weighted_gram(phi, weight), expected)


def test_energies_of_a_table_ignore_a_block_without_weight(rng, maps):
    x, weight = rng.normal(size=(11, D)), rng.uniform(size=11)
    weight[4:8] = 0
    (energy,) = energies_of(stack(maps[:1]), Off(), Samples(x, weight=weight))
    assert energy == pytest.approx(naive_energy(maps[0], Off(), x, weight), rel=1e-9)


def test_log_scale_range_spans_all_rows_and_no_padding(rng, network):
    metric, x = Diag(network(rng, (D, 4, D))), rng.normal(size=(11, D)) + 3
    log_scales = np.asarray(jax.jit(lambda metric, x: metric.log_scales(x))(metric, x))
    low, high = log_scale_range(metric, Samples(x))
    assert low == pytest.approx(log_scales.min(), rel=1e-9)
    assert high == pytest.approx(log_scales.max(), rel=1e-9)
    assert log_scale_range(Off(), Samples(x)) == (0, 0)


def test_frozen_gram_error_is_that_of_the_frozen_columns_over_all_rows(rng, network):
    x, weights = rng.normal(size=(50, 2)), rng.uniform(size=50)
    columns = Columns(x, 4, [ScalarMap(network(rng, (2, 5, 1))) for _ in range(2)])
    phi = columns.values[:, :2]
    expected = np.sum(((phi.T * weights) @ phi / weights.sum() - np.eye(2)) ** 2)
    assert columns.frozen_gram_error(weights) == pytest.approx(expected)
    assert Columns(x, 4).frozen_gram_error(weights) == 0


@given(n=st.integers(2, 40), step=st.integers(1, 50), seed=st.integers(0, 99))
def test_a_gram_matrix_of_all_rows_does_not_depend_on_their_order_nor_on_rows_without_weight(
    n, step, seed
):
    rng = np.random.default_rng(seed)
    phi, weights = rng.normal(size=(n, 3)), rng.uniform(0.1, 1, n)
    weights[rng.integers(n)] = 0
    counted, order = weights > 0, rng.permutation(n)
    expected = (phi[counted].T * weights[counted]) @ phi[counted] / weights.sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "GRAM_ROWS", step)
        np.testing.assert_allclose(
            weighted_gram(phi[order], weights[order]), expected, rtol=1e-9, atol=1e-12
        )
