"""Constraints, bounds and shared factors do what docs/metrics.md derives for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import special_ortho_group

from piefs.core.agop import ClosedForm, best_log_scales
from piefs.core.gradients import FactoredField, dot
from piefs.core.metric import (
    Composed,
    Diag,
    RotatedDiag,
    SharedDiag,
    SharedRotation,
    init_metric,
)
from piefs.core.metric import constrained as _constrained
from piefs.core.networks import MLP, generator
from piefs.core.rotations import make_rotation
from piefs.errors import InputError
from piefs.training.checks import SCOPES, check_metric
from piefs.training.config import Metric

pytestmark = pytest.mark.usefixtures("float64")


def field(rng, n=40, d=5, h=3):
    return FactoredField(jnp.asarray(rng.normal(size=(n, h))), jnp.asarray(rng.normal(size=(d, h))))


# Compiled whole: operation by operation, each would be a program of its own.
constrained = jax.jit(_constrained, static_argnums=(1, 2))
apply = jax.jit(lambda metric, x, v: metric.apply(x, v))
dense = jax.jit(lambda v: v.dense())
log_scales_of = jax.jit(lambda metric, x: metric.log_scales(x))


@jax.jit
def energy(metric, v):
    x = jnp.zeros(v.dense().shape)
    applied = metric.apply(x, v)
    return jnp.mean(dot(applied, applied))


# --- constraints ---------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.1, 3.0, 50.0]))
def test_constraints_hold_exactly_and_the_bound_is_never_passed(seed, scale):
    z = scale * np.random.default_rng(seed).normal(size=(3, 7))
    parts = (z[:, ::2], z[:, 1::2])
    volume = np.concatenate(constrained(parts, "volume"), axis=1)
    np.testing.assert_allclose(volume.sum(axis=1), 0, atol=1e-11 * scale)
    trace = np.concatenate(constrained(parts, "trace"), axis=1)
    np.testing.assert_allclose(np.mean(np.exp(-2 * trace), axis=1), 1, rtol=1e-10)
    for constraint in ("volume", "trace"):
        bounded = np.concatenate(constrained(parts, constraint, 1.5), axis=1)
        assert np.abs(bounded).max() < 1.5
        assert np.ptp(bounded, axis=1).max() <= 1.5
    kept = np.concatenate(constrained(parts, "trace", 1.5), axis=1)
    np.testing.assert_allclose(np.mean(np.exp(-2 * kept), axis=1), 1, rtol=1e-10)


@pytest.mark.parametrize("constraint", ["volume", "trace"])
def test_local_and_shared_scales_obey_the_same_constraint(constraint, rng):
    z, x = rng.normal(size=4), rng.normal(size=(3, 4))
    net = MLP((np.zeros((4, 4)),), (jnp.asarray(z),), "relu")
    local = np.asarray(log_scales_of(Diag(net, constraint, 2.0), x))
    shared = np.asarray(log_scales_of(SharedDiag(jnp.asarray(z), constraint, 2.0), x))
    np.testing.assert_allclose(local, shared, rtol=1e-12)
    v = field(rng, 3, 4)
    applied = apply(SharedDiag(jnp.asarray(z), constraint, 2.0), x, v)
    assert isinstance(applied, FactoredField)
    np.testing.assert_allclose(dense(applied), np.exp(shared) * dense(v), rtol=1e-12)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", ["diag", "cayley", "agop"])
def test_every_metric_begins_as_the_identity_in_the_precision_asked_for(name, scope, rng):
    if name != "cayley" and scope not in (SCOPES[: 1 + (name == "diag")]):
        with pytest.raises(InputError, match="no meaning"):
            check_metric(Metric(name, scope))
        return
    d = 70  # agop tells fewer directions apart
    metric = init_metric(name, generator(0), d, (4,), jnp.float32, scope=scope, bound=1.5)
    scales = getattr(metric, "scales", getattr(metric, "then", metric))
    assert scales.bound == 1.5
    leaves = jax.tree.leaves(metric)
    assert leaves
    assert all(isinstance(leaf, jax.Array) and leaf.dtype == jnp.float32 for leaf in leaves)
    assert all(leaf.size <= 70 * 64 for leaf in leaves)
    v = field(rng, 3, d)
    applied = apply(metric, jnp.asarray(rng.normal(size=(3, d))), v)
    np.testing.assert_allclose(dense(applied), dense(v), rtol=1e-5, atol=1e-6)


def test_a_depth_is_refused_where_it_means_nothing():
    with pytest.raises(InputError, match=r'depth has no meaning.* it is for .*"cayley"'):
        check_metric(Metric("diag", depth=2))


@pytest.mark.parametrize("constraint", ["volume", "trace"])
def test_directions_that_are_not_told_apart_share_their_scale(constraint, rng):
    d, r = 6, 2
    begun = ClosedForm(np.eye(d, r), np.zeros(r), np.ones(()), constraint, 3.0)
    rotation = special_ortho_group.rvs(d, random_state=0)
    values = np.array([9.0, 4.0, 0.3, 0.2, 0.2, 0.1])
    metric = begun.refreshed(rotation @ np.diag(values) @ rotation.T)
    expected = best_log_scales(values.copy(), r, constraint, 3.0)
    matrix = rotation @ np.diag(np.exp(expected)) @ rotation.T
    v = field(rng, 4, d)
    applied = dense(apply(metric, np.zeros((4, d)), v))
    np.testing.assert_allclose(applied, dense(v) @ matrix, rtol=1e-8, atol=1e-10)
    found = log_scales_of(metric, np.zeros((1, d)))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    single = jax.tree.map(lambda a: a.astype(jnp.float32), begun).refreshed(np.eye(d))
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {jnp.dtype("float32")}


# --- optima: each is derived in docs/metrics.md ------------------------------------------------


def least_energy(second_moments, constraint):
    """min Σ λ_i² m_i over the constraint, by a general-purpose optimiser."""

    def value(z):
        (log_scales,) = constrained((jnp.asarray(z)[None],), constraint)
        return jnp.sum(jnp.exp(2 * log_scales[0]) * second_moments)

    slope = jax.jit(jax.value_and_grad(value))
    start = np.zeros(len(second_moments))
    return minimize(lambda z: [np.asarray(a) for a in slope(z)], start, jac=True).fun


def test_best_scales_at_a_point_are_a_geometric_mean_or_a_sum_of_sizes(rng):
    v = rng.uniform(0.3, 2, 5)
    assert least_energy(v**2, "volume") == pytest.approx(5 * np.prod(v**2) ** 0.2, rel=1e-6)
    assert least_energy(v**2, "trace") == pytest.approx(np.sum(v) ** 2 / 5, rel=1e-6)


def test_best_shared_scales_under_the_trace_sum_root_mean_squares(rng):
    v = rng.normal(size=(50, 4)) * [3, 1, 0.3, 0.1]
    moments = np.mean(v**2, axis=0)
    expected = np.sum(np.sqrt(moments)) ** 2 / 4
    assert least_energy(moments, "trace") == pytest.approx(expected, rel=1e-6)
    assert expected < moments.sum()  # never worse than A = I


def test_with_a_free_rotation_the_volume_has_no_minimum_and_the_trace_stops_at_a_share(rng):
    v = rng.normal(size=6)
    before = np.inf
    for rest in (1e-1, 1e-2, 1e-3):  # rotations that bring v ever nearer to the first axis
        aligned = np.array([1, *([rest] * 5)]) * np.linalg.norm(v)
        volume, trace = (least_energy(aligned**2, c) for c in ("volume", "trace"))
        assert volume < 0.2 * before
        assert trace >= np.sum(v**2) / 6 * (1 - 1e-9)
        before = volume
    assert volume < 1e-3 * np.sum(v**2)
    assert trace == pytest.approx(np.sum(v**2) / 6, rel=2e-2)


def closed_form(d, constraint, bound):
    return init_metric("agop", generator(0), d, constraint=constraint, bound=bound)


def outer(v):
    rows = np.asarray(dense(v))
    return rows.T @ rows / len(rows)


@pytest.mark.parametrize("constraint", ["volume", "trace"])
def test_closed_form_reaches_its_optimum_and_no_other_matrix_does_better(constraint, rng):
    d, v = 4, field(rng, d=4, h=4)
    g = outer(v)
    metric = closed_form(d, constraint, 50.0).refreshed(g)
    found = float(energy(metric, v))
    values = np.linalg.eigvalsh(g)
    best = {
        "volume": d * np.prod(values) ** (1 / d),
        "trace": np.sum(np.sqrt(values)) ** 2 / d,
    }
    assert found == pytest.approx(best[constraint], rel=1e-9)
    x = np.zeros((1, d))
    (log_scales,) = constrained((log_scales_of(metric, x),), constraint)
    np.testing.assert_allclose(log_scales_of(metric, x), log_scales, atol=1e-12)  # it is feasible
    for seed in range(20):
        other = np.random.default_rng(seed)
        scales = SharedDiag(jnp.asarray(other.normal(size=d)), constraint)
        turn = special_ortho_group.rvs(d, random_state=seed)
        turned = v.mapped_by(lambda rows, turn=turn: rows @ turn.T)
        assert float(energy(scales, turned)) > found


@pytest.mark.parametrize("constraint", ["volume", "trace"])
def test_closed_form_of_a_singular_outer_product_keeps_to_its_bound(constraint, rng):
    d, v = 6, field(rng, d=6, h=2)
    metric = closed_form(d, constraint, 1.2).refreshed(outer(v))
    log_scales = np.asarray(log_scales_of(metric, np.zeros((1, d))))[0]
    assert np.ptp(log_scales) == pytest.approx(1.2, rel=1e-9)
    assert float(energy(metric, v)) < float(energy(closed_form(d, constraint, 1.2), v))
    nothing = closed_form(d, constraint, 1.2).refreshed(np.zeros((d, d)))
    np.testing.assert_allclose(log_scales_of(nothing, np.zeros((1, d))), 0, atol=1e-12)


@given(
    eigenvalues=st.lists(st.floats(0, 1e6), min_size=2, max_size=9),
    constraint=st.sampled_from(["volume", "trace"]),
    bound=st.floats(0.1, 9),
)
def test_best_scales_keep_constraint_and_bound_and_cost_no_more_than_none(
    eigenvalues, constraint, bound
):
    g = np.sort(eigenvalues)[::-1]
    log_scales = best_log_scales(g.copy(), len(g), constraint, bound)
    size = log_scales if constraint == "volume" else np.exp(-2 * log_scales) - 1
    assert np.mean(size) == pytest.approx(0, abs=1e-8)
    assert np.ptp(log_scales) <= bound * (1 + 1e-6)
    assert np.all(np.diff(log_scales) >= -1e-9)  # the steeper a direction, the smaller its scale
    assert np.sum(g * np.exp(2 * log_scales)) <= np.sum(g) * (1 + 1e-9)


def test_directions_past_the_leading_ones_share_their_mean():
    values = np.array([8.0, 4.0, 0.3, 0.1])
    few = best_log_scales(values.copy(), 2, "trace", 50.0)
    pooled = best_log_scales(np.array([8.0, 4.0, 0.2, 0.2]), 4, "trace", 50.0)
    np.testing.assert_allclose(few, pooled, rtol=1e-12)


def test_descent_leaves_the_closed_form_alone(rng):
    v = field(rng)
    metric = closed_form(5, "trace", 2.0).refreshed(outer(v))
    slopes = jax.tree.leaves(jax.jit(jax.grad(energy))(metric, v))
    assert all(np.all(np.asarray(slope) == 0) for slope in slopes)


# --- scopes --------------------------------------------------------------------------------------


def made(scope, name="cayley", d=5):
    return init_metric(name, generator(0), d, (4,), scope=scope, constraint="trace")


def test_scopes_give_the_factors_they_promise(rng):
    assert isinstance(made("local").scales, Diag)
    assert made("local").first is None
    assert isinstance(made("composed").first, SharedRotation)
    assert isinstance(made("global-scales").scales, SharedDiag)
    both, turned = made("global"), made("global-rotation")
    assert isinstance(both, Composed)
    assert isinstance(both.then, SharedDiag)
    assert isinstance(turned.then, Diag)
    assert isinstance(init_metric("diag", generator(0), 5, scope="global"), SharedDiag)
    assert isinstance(init_metric("agop", generator(0), 5), ClosedForm)


def test_shared_factors_keep_the_gradient_factored_and_act_as_a_matrix(rng):
    rotation = make_rotation("butterfly")
    outputs = jnp.asarray(rng.normal(size=rotation.n_parameters(5)))
    scales = SharedDiag(jnp.asarray(rng.normal(size=5)), "trace")
    metric, v = Composed(SharedRotation(outputs, rotation), scales), field(rng)
    x = np.zeros((40, 5))
    applied = apply(metric, x, v)
    assert isinstance(applied, FactoredField)
    unit = FactoredField(np.eye(5), np.eye(5))
    matrix = np.asarray(dense(apply(metric, x[:5], unit))).T
    np.testing.assert_allclose(dense(applied), dense(v) @ matrix.T, rtol=1e-10)
    singular = np.linalg.svd(matrix, compute_uv=False)
    lam = np.exp(np.asarray(log_scales_of(metric, x))[0])
    np.testing.assert_allclose(np.sort(singular), np.sort(lam), rtol=1e-10)


def test_composed_metric_turns_by_the_shared_rotation_first(rng, network):
    rotation = make_rotation("trotter")
    shared = SharedRotation(jnp.asarray(rng.normal(size=4)), rotation)
    local = RotatedDiag(Diag(network(rng, (5, 4, 5))), network(rng, (5, 4, 4)), rotation)
    both = RotatedDiag(local.scales, local.angle_net, rotation, shared)
    x, v = jnp.asarray(rng.normal(size=(40, 5))), field(rng)
    expected = dense(apply(local, x, apply(shared, x, v)))
    np.testing.assert_allclose(dense(apply(both, x, v)), expected, rtol=1e-12)
    assert not np.allclose(expected, dense(apply(local, x, v)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("diag", "composed", None), 'use "local" or "global"'),
        (("agop", "global", None), "no meaning"),
        (("off", SCOPES[1], None), "no meaning"),
        (("trotter", "local", 3), "a depth has no meaning"),
    ],
)
def test_options_without_a_meaning_are_refused(options, words):
    name, scope, depth = options
    with pytest.raises(InputError, match=words):
        check_metric(Metric(name, scope, depth=depth))
