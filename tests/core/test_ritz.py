"""The exact finish: whitening keeps prefixes, Ritz values order by smoothness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from piefs.core.ritz import ritz, whitening


@pytest.fixture
def form(rng):
    a = rng.normal(size=(5, 5))
    return a @ a.T + 0.1 * np.eye(5)


@pytest.fixture
def c(rng):
    a = rng.normal(size=(5, 5))
    return a @ a.T + 0.1 * np.eye(5)


def test_whitening_gives_the_identity_and_its_inverse_undoes_it(c):
    mixing, unmixing = whitening(c)
    np.testing.assert_allclose(mixing @ c @ mixing.T, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(mixing @ unmixing, np.eye(5), atol=1e-12)


def test_whitening_is_gram_schmidt_so_prefixes_span_what_they_did(c, rng):
    mixing, _ = whitening(c)
    np.testing.assert_array_equal(np.triu(mixing, 1), 0)
    assert np.all(np.diag(mixing) > 0)


def test_whitening_of_the_identity_changes_nothing():
    mixing, unmixing = whitening(np.eye(3))
    np.testing.assert_allclose(mixing, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(unmixing, np.eye(3), atol=1e-12)


def test_a_redundant_map_is_not_blown_up():
    phi = np.random.default_rng(0).normal(size=(1000, 2))
    phi = np.column_stack([phi, phi[:, 0] + phi[:, 1]])  # three maps, two dimensions
    c = phi.T @ phi / len(phi)
    mixing, unmixing = whitening(c)
    assert np.all(np.isfinite(mixing))
    white = phi @ mixing.T
    np.testing.assert_allclose(white[:, :2].T @ white[:, :2] / 1000, np.eye(2), atol=1e-5)
    assert np.mean(white[:, 2] ** 2) < 2
    np.testing.assert_allclose(mixing @ unmixing, np.eye(3), atol=1e-6)


def test_maps_that_are_zero_do_not_break_it():
    mixing, unmixing = whitening(np.zeros((2, 2)))
    assert np.all(np.isfinite(mixing))
    assert np.all(np.isfinite(unmixing))


def test_ritz_diagonalises_both_forms_smoothest_first(form, c):
    values, rotation = ritz(form, c)
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose(rotation @ c @ rotation.T, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(rotation @ form @ rotation.T, np.diag(values), atol=1e-10)


def test_ritz_values_do_not_depend_on_the_basis_of_the_space(form, c, rng):
    change = rng.normal(size=(5, 5))
    same, _ = ritz(change @ form @ change.T, change @ c @ change.T)
    np.testing.assert_allclose(same, ritz(form, c)[0], rtol=1e-8)


@given(n=st.integers(1, 12), seed=st.integers(0, 999), stretch=st.floats(0, 3))
def test_any_gram_matrix_that_is_not_singular_is_whitened_by_a_triangle(n, seed, stretch):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 2 * n + 1)) * 10.0 ** rng.uniform(-stretch, 0, size=(n, 1))
    c = a @ a.T / len(a.T)
    mixing, unmixing = whitening(c)
    np.testing.assert_allclose(mixing @ c @ mixing.T, np.eye(n), atol=1e-4)
    np.testing.assert_allclose(unmixing @ mixing, np.eye(n), atol=1e-8)
    np.testing.assert_array_equal(np.triu(mixing, 1), 0)


@given(n=st.integers(1, 8), seed=st.integers(0, 999), factor=st.floats(0.01, 100))
def test_ritz_values_lie_between_the_energies_and_grow_with_the_form(n, seed, factor):
    a, b = np.random.default_rng(seed).normal(size=(2, n, n + 2))
    form, c = a @ a.T, b @ b.T + np.eye(n)
    values, rotation = ritz(form, c)
    energies = np.diag(form) / np.diag(c)
    assert values[0] <= energies.min() * (1 + 1e-9)
    assert values[-1] >= energies.max() * (1 - 1e-9)
    scaled, same = ritz(factor * form, c)
    np.testing.assert_allclose(scaled, factor * values, rtol=1e-6, atol=1e-8 * factor)
    np.testing.assert_allclose(np.abs(rotation @ c @ same.T), np.eye(n), atol=1e-5)
