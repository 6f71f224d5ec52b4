"""Perceptrons at the size of the maps."""

import jax
import numpy as np
import pytest

from piefs.core.maps import init_map
from piefs.core.networks import generator
from reproduction.baselines.features import MatchedMLP, matched_mlp, matched_width, n_parameters


def n_entries(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("d", [1, 8, 300])
def test_parameters_are_counted_as_the_maps_have_them(d):
    shapes = jax.eval_shape(lambda: init_map(generator(0), d))
    assert n_parameters((d, 64, 64, 64, 1)) == n_entries(shapes)


@pytest.mark.parametrize("after", [(1,), (10,), (16, 10)], ids=str)
@pytest.mark.parametrize("d", [1, 2, 64, 784])
def test_no_other_width_matches_sixteen_maps_better(d, after):
    wanted = 16 * n_parameters((d, 64, 64, 64, 1))
    error = {w: abs(n_parameters((d, w, w, w, *after)) - wanted) for w in range(1, 2000)}
    width = matched_width(d, after, 16)
    assert error[width] == min(error.values())
    assert error[width] < 0.01 * wanted


@pytest.mark.slow
def test_the_fitted_network_has_the_parameters_of_the_maps(rng):
    X, y = rng.normal(size=(90, 5)), np.arange(90) % 3
    net = MatchedMLP(4, random_state=0).fit(X, y).net_
    entries = n_entries((net.coefs_, net.intercepts_))
    assert entries == pytest.approx(4 * n_parameters((5, 64, 64, 64, 1)), rel=0.01)


def test_early_stopping_is_left_out_where_a_tenth_of_the_rows_cannot_hold_every_class(rng):
    X = rng.normal(size=(40, 2))
    stops = [
        matched_mlp(X[: len(y)], y, n_maps=2, seed=0).early_stopping
        for y in (np.arange(40) % 2, np.arange(40) % 5, np.r_[np.arange(39) % 2, 7])
    ]
    assert stops == [True, False, False]
