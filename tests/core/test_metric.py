import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from piefs.core.gradients import DenseField, FactoredField, dot
from piefs.core.metric import Diag, MetricField, Off, RotatedDiag, init_metric
from piefs.core.networks import MLP, generator
from piefs.core.rotations import FAMILIES, make_rotation, rotate
from piefs.errors import InputError
from piefs.training.checks import METRICS, check_metric
from piefs.training.config import Metric as Settings

pytestmark = pytest.mark.usefixtures("float64")

N = 6
ROTATED = ("trotter", "chain", "cayley")
GIVENS = ("trotter", "chain")


def points(rng, d):
    return jnp.asarray(rng.normal(size=(N, d)))


def factored(rng, d, h=4):
    return FactoredField(jnp.asarray(rng.normal(size=(N, h))), jnp.asarray(rng.normal(size=(d, h))))


@pytest.fixture
def make_metric(network):
    """Metrics with numpy's random numbers, the widths of `init_metric(…, hidden=(8,))`."""

    def make(name, d, seed=0):
        rng = np.random.default_rng(seed)
        scales = Diag(network(rng, (d, 8, d)))
        if name == "diag":
            return scales
        rotation = make_rotation(name)
        return RotatedDiag(scales, network(rng, (d, 8, rotation.n_parameters(d))), rotation)

    return make


def steep(metric, factor=30.0):
    """The same metric with large network outputs, far from the identity."""
    return jax.tree.map(lambda a: factor * a, metric)


@jax.jit
def rotation_matrices(metric, x):
    """U(x_i), shape (n, d, d), its columns from unit vectors."""
    d = x.shape[1]
    angles = jnp.repeat(metric.rotation.squash((metric.angle_net(x),))[0], d, axis=0)
    rows = rotate(metric.rotation, angles, jnp.tile(jnp.eye(d), (x.shape[0], 1)))
    return rows.reshape(-1, d, d).transpose(0, 2, 1)


@jax.jit
def log_scales_of(metric, x):
    return metric.log_scales(x)


@pytest.mark.parametrize("d", [2, 7])
@given(data=st.data())
def test_log_scales_sum_to_zero_at_every_point(d, data):
    entries = st.floats(-5, 5)
    x, w, b = (
        data.draw(arrays(float, shape, elements=entries)) for shape in ((N, d), (d, d), (d,))
    )
    log_scales = np.asarray(log_scales_of(Diag(MLP((w,), (b,), "relu")), x))
    assert log_scales.shape == (N, d)
    np.testing.assert_allclose(log_scales.sum(axis=1), 0, atol=1e-11)


@pytest.mark.parametrize("name", ["diag", *ROTATED])
def test_scales_have_determinant_one_at_every_point(name, rng, make_metric):
    x, metric = points(rng, 5), make_metric(name, 5)
    log_scales = np.asarray(log_scales_of(metric, x))
    np.testing.assert_allclose(np.prod(np.exp(log_scales), axis=1), 1, rtol=1e-12)
    assert np.abs(log_scales).max() > 0.1
    far = np.asarray(log_scales_of(steep(metric), x))
    np.testing.assert_allclose(far.sum(axis=1), 0, atol=1e-9 * np.abs(far).max())


def test_diag_scales_each_component_by_its_own_factor(rng, make_metric):
    x, v = points(rng, 5), factored(rng, 5)
    metric = make_metric("diag", 5)
    z = np.asarray(metric.scale_net(x))
    expected = np.exp(z - z.mean(axis=1, keepdims=True)) * np.asarray(v.dense())
    np.testing.assert_allclose(metric.apply(x, v).dense(), expected, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 5, 6])
@pytest.mark.parametrize("name", ROTATED)
def test_rotated_metric_rotates_first_and_scales_afterwards(name, d, rng, make_metric):
    x, v = points(rng, d), factored(rng, d)
    metric = make_metric(name, d)
    scales = np.exp(np.asarray(metric.log_scales(x)))
    rotations = np.asarray(rotation_matrices(metric, x))
    dense = np.stack([np.diag(s) @ u for s, u in zip(scales, rotations, strict=True)])
    expected = np.einsum("nij,nj->ni", dense, np.asarray(v.dense()))
    applied = jax.jit(lambda m: m.apply(x, v).dense())(metric)
    np.testing.assert_allclose(applied, expected, rtol=1e-10, atol=1e-12)
    singular = np.linalg.svd(dense, compute_uv=False)
    np.testing.assert_allclose(np.sort(singular), np.sort(scales), rtol=1e-10)


@jax.jit
def energy_and_slopes(metric, x, v):
    """‖ΛUv‖², its gradient in the metric's parameters, and that of ‖UΛv‖²."""

    def energy(metric):
        transformed = metric.apply(x, v)
        return jnp.mean(dot(transformed, transformed))

    def energy_in_the_other_order(metric):
        rotation = RotatedDiag(Off(), metric.angle_net, metric.rotation)
        transformed = rotation.apply(x, metric.scales.apply(x, v))
        return jnp.mean(dot(transformed, transformed))

    return *jax.value_and_grad(energy)(metric), jax.grad(energy_in_the_other_order)(metric)


@pytest.mark.parametrize("name", ROTATED)
def test_energy_loses_the_rotation_when_scales_act_before_it(name, rng, make_metric):
    metric = make_metric(name, 5)
    energy, _, other_order = energy_and_slopes(metric, points(rng, 5), factored(rng, 5))
    for leaf in jax.tree.leaves(other_order.angle_net):
        assert np.abs(leaf).max() < 1e-13 * energy
    for leaf in jax.tree.leaves(other_order.scales):
        assert np.abs(leaf).max() > 1e-3 * energy


@pytest.mark.parametrize("name", ROTATED)
def test_energy_moves_every_parameter_of_scales_and_rotation(name, rng, make_metric):
    metric = make_metric(name, 5)
    energy, slopes, _ = energy_and_slopes(metric, points(rng, 5), factored(rng, 5))
    for leaf in jax.tree.leaves((slopes.scales, slopes.angle_net)):
        assert np.abs(leaf).max() > 1e-3 * energy


@pytest.mark.parametrize("name", GIVENS)
def test_angles_stay_within_a_half_turn(name, rng, make_metric):
    metric = make_metric(name, 5)
    x = points(rng, 5)
    np.testing.assert_allclose(
        metric.rotation.squash((metric.angle_net(x),))[0],
        math.pi * np.tanh(np.asarray(metric.angle_net(x))),
        rtol=1e-12,
    )
    extreme = np.abs(metric.rotation.squash((steep(metric, 100.0).angle_net(x),))[0])
    assert extreme.shape == (N, 4)
    assert extreme.max() <= math.pi
    assert extreme.max() > 0.99 * math.pi


def test_off_leaves_the_gradient_factored(rng):
    x, v = points(rng, 5), factored(rng, 5)
    metric = init_metric("off", generator(0), 5)
    assert metric.apply(x, v) is v
    np.testing.assert_array_equal(metric.log_scales(x), np.zeros((N, 5)))
    assert jax.tree.leaves(metric) == []


@pytest.mark.parametrize("name", METRICS)
def test_every_named_metric_is_off_in_one_dimension(name):
    assert isinstance(init_metric(name, generator(0), 1), Off)


def test_names_give_the_metrics_they_promise():
    made = {name: init_metric(name, generator(0), 4, (4,)) for name in METRICS}
    assert isinstance(made["off"], Off)
    assert isinstance(made["diag"], Diag)
    for name, family in FAMILIES.items():
        assert isinstance(made[name], RotatedDiag)
        assert type(made[name].rotation) is family


def test_hidden_layers_of_the_metric_networks_are_a_parameter():
    metric = init_metric("trotter", generator(0), 4, (4, 4))
    assert [w.shape for w in metric.scales.scale_net.weights] == [(4, 4), (4, 4), (4, 4)]
    assert [w.shape for w in metric.angle_net.weights] == [(4, 4), (4, 4), (4, 3)]


def test_metric_has_the_dtype_asked_for():
    metric = init_metric("diag", generator(0), 4, (4,), jnp.float32)
    assert {a.dtype for a in jax.tree.leaves(metric)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("name", METRICS)
def test_named_metric_starts_as_the_identity(name, rng):
    x, v = points(rng, 4), factored(rng, 4)
    metric = init_metric(name, generator(0), 4, (4,))
    applied = jax.jit(lambda m: m.apply(x, v).dense())(metric)
    np.testing.assert_allclose(applied, v.dense(), rtol=1e-12)


def test_scales_and_angles_start_from_different_random_numbers():
    metric = init_metric("trotter", generator(0), 4, (4,))
    assert np.all(metric.scales.scale_net.weights[0] != metric.angle_net.weights[0])
    assert np.all(metric.scales.scale_net.biases[0] != metric.angle_net.biases[0])


def test_unknown_metric_is_refused_with_the_choices_named():
    with pytest.raises(InputError, match="unknown metric 'euclid'") as error:
        check_metric(Settings("euclid"))
    assert all(name in str(error.value) for name in METRICS)


def test_factory_of_the_users_own_is_called_with_key_and_number_of_features():
    class Doubling(MetricField):
        key_data: jax.Array
        n_features: int = eqx.field(static=True)

        def apply(self, x, v):
            return DenseField(2 * v.dense())

        def log_scales(self, x):
            return jnp.full_like(x, math.log(2))

    def made(seed):
        return init_metric(lambda key, d: Doubling(jax.random.key_data(key), d), generator(seed), 1)

    metric = made(7)
    assert isinstance(metric, Doubling)
    assert metric.n_features == 1
    np.testing.assert_array_equal(metric.key_data, made(7).key_data)
    assert np.any(metric.key_data != made(8).key_data)


def test_metric_without_its_methods_cannot_be_made():
    class Halfway(MetricField):
        def apply(self, x, v):
            return v

    with pytest.raises(TypeError, match="log_scales"):
        Halfway()
