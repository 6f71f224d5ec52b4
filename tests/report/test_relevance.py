"""Relevance from the maps and from the metric."""

import jax
import jax.numpy as jnp
import numpy as np

from piefs import PIEFSClassifier
from piefs.core.losses import init_readout
from piefs.core.maps import init_map, stack
from piefs.core.metric import Diag, RotatedDiag, SharedDiag
from piefs.core.model import Model, Scaling
from piefs.core.networks import generator
from piefs.core.rotations import make_rotation, rotate
from piefs.report.relevance import (
    column_relevance,
    gradient_outer_product,
    inverse_metric,
    kernel_rates,
    metric_matrices,
    slopes_by_map,
)

D, K = 3, 2


def model(metric):
    maps = stack([init_map(generator(k), D, (4,), "tanh") for k in range(K)])
    mixing = jnp.array([[1.0, 0.0], [0.5, 2.0]])
    scale = np.array([1.0, 2.0, 0.5])
    return Model(Scaling(np.ones(D), scale), maps, mixing, metric, init_readout(2, K))


def test_outer_product_is_that_of_the_coordinates_in_the_inputs_the_maps_see(rng):
    fitted = model(SharedDiag(jnp.zeros(D)))
    x = rng.normal(size=(6, D)).astype(np.float32)
    seen = fitted.scaled(jnp.asarray(x))

    def coordinates(row):
        return fitted.of_scaled(row[None])[0]

    slopes = np.asarray(jax.jit(jax.vmap(jax.jacrev(coordinates)))(seen))
    expected = np.einsum("nki,nkj->ij", slopes, slopes) / 6
    np.testing.assert_allclose(gradient_outer_product(fitted, x), expected, rtol=1e-4, atol=1e-6)


def test_matrices_are_scales_times_rotation_and_their_inverse_square_is_averaged(rng, network):
    scales, angles = Diag(network(rng, (D, 4, D))), network(rng, (D, 4, D - 1))
    metric = jax.tree.map(
        lambda a: a.astype(jnp.float32), RotatedDiag(scales, angles, make_rotation("trotter"))
    )
    fitted, x = model(metric), rng.normal(size=(4, D)).astype(np.float32)
    seen = fitted.scaled(jnp.asarray(x))
    found = metric_matrices(fitted, x)
    lam = np.exp(np.asarray(metric.log_scales(seen)))
    for i in range(4):
        omega = metric.rotation.squash((metric.angle_net(seen[i : i + 1]),))[0]
        u = np.asarray(rotate(metric.rotation, omega, jnp.eye(D))).T
        np.testing.assert_allclose(found[i], lam[i][:, None] * u, rtol=1e-4, atol=1e-5)
    expected = np.mean([np.linalg.inv(a.T @ a) for a in found.astype(float)], axis=0)
    np.testing.assert_allclose(inverse_metric(fitted, x), expected, rtol=1e-3, atol=1e-5)


def test_relevance_is_a_share():
    np.testing.assert_allclose(column_relevance(np.diag([3.0, 1.0])), [0.75, 0.25])


def test_slopes_by_map_are_mean_squares_of_the_coordinates_derivatives():
    fitted = model(SharedDiag(jnp.zeros(D)))
    x = np.random.default_rng(0).normal(size=(7, D)).astype(np.float32)

    def seen(z):  # the coordinates as functions of what the maps see
        return fitted.of_scaled(z[None])[0]

    jacobians = jax.vmap(jax.jacobian(seen))(fitted.scaled(jnp.asarray(x)))
    expected = np.mean(np.asarray(jacobians) ** 2, axis=0).T
    slopes = slopes_by_map(fitted, x)
    np.testing.assert_allclose(slopes, expected, rtol=1e-4)
    diagonal = np.diag(gradient_outer_product(fitted, x))
    np.testing.assert_allclose(slopes.sum(axis=1), diagonal, rtol=1e-5)


def test_the_closed_form_says_which_columns_its_metric_stretches(rng):
    x = rng.normal(size=(150, D))
    fitted = PIEFSClassifier(n_components=2, random_state=0).fit(x, x[:, 1] > 0).model_
    rates = kernel_rates(fitted)
    assert rates.shape == (D,)
    assert rates.argmax() == 1
    assert metric_matrices(fitted, x).shape == (len(x), D, D)
    np.testing.assert_allclose(np.diag(inverse_metric(fitted, x)), rates**2)
