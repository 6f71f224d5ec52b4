from dataclasses import replace
from functools import partial
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from piefs.core.losses import Readout, init_readout, row_half_sums, split_gram_error
from piefs.core.maps import ScalarMap
from piefs.core.metric import Diag, Off
from piefs.core.networks import MLP
from piefs.core.objectives import Batch, SequentialObjective, StepRecord, Trainable
from piefs.core.weighting import Dampened, Static
from piefs.training.config import Optimizer
from piefs.training.step import Steps, begun, descend

pytestmark = pytest.mark.usefixtures("float64")

B, D, K, N_CLASSES, ACTIVE = 6, 3, 4, 3, 1
GENTLE = Dampened(t_orth=5.0, t_class=5.0)
LOSS = SequentialObjective(GENTLE, k=ACTIVE)


@pytest.fixture
def params(rng, network):
    readout = Readout(jnp.asarray(rng.normal(size=(N_CLASSES, K))), jnp.asarray(rng.normal(size=3)))
    return Trainable(
        ScalarMap(network(rng, (D, 5, 4, 1), "tanh")), Diag(network(rng, (D, 4, D))), readout
    )


def make_chunk(rng, steps):
    """A chunk at k = ACTIVE: one frozen column, zeros beyond."""
    frozen = np.where(np.arange(K) < ACTIVE, rng.normal(size=(steps, B, K)), 0.0)
    return Batch(
        jnp.asarray(rng.normal(size=(steps, B, D))),
        jnp.asarray(frozen),
        jnp.asarray(rng.integers(0, N_CLASSES, (steps, B))),
        jnp.asarray(rng.uniform(size=(steps, B))),
        jnp.asarray(rng.uniform(size=(steps, B))),
    )


@pytest.fixture
def batch(rng):
    return jax.tree.map(lambda a: a[0], make_chunk(rng, 1))


@partial(jax.jit, static_argnums=0)
def value(objective, params, batch):
    return objective.after(ACTIVE, 0.0)(params, batch)


@partial(jax.jit, static_argnums=0)
def gradient_of(objective, params, batch):
    return jax.grad(objective.after(ACTIVE, 0.0), has_aux=True)(params, batch)[0]


def assert_close(left, right, **tolerance):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


# --- the loss ----------------------------------------------------------------------------------


def in_numpy(tree):
    return jax.tree.map(np.asarray, tree)


def by_the_papers_formulas(params, batch, k, t_orth, t_class):
    """L_orth, L_class and L_mde row by row in numpy, then their weights."""
    params, batch = in_numpy(params), in_numpy(batch)
    (w1, w2, w3), (b1, b2, b3) = params.phi.net.weights, params.phi.net.biases
    (v1, v2), (c1, c2) = params.metric.scale_net.weights, params.metric.scale_net.biases
    p, q = batch.weight / batch.weight.sum(), batch.label_weight / batch.label_weight.sum()
    c, mde, class_ = np.zeros((k + 1, k + 1)), 0.0, 0.0
    for i, x in enumerate(batch.x):
        h1 = np.tanh(x @ w1 + b1)
        h2 = np.tanh(h1 @ w2 + b2)
        phi = np.append(batch.frozen[i, :k], h2 @ w3[:, 0] + b3[0])
        c += p[i] * np.outer(phi, phi)

        gradient = w1 @ np.diag(1 - h1**2) @ w2 @ np.diag(1 - h2**2) @ w3[:, 0]
        z = np.maximum(x @ v1 + c1, 0) @ v2 + c2
        mde += p[i] * np.sum((np.exp(z - z.mean()) * gradient) ** 2)

        logits = params.readout.bias + params.readout.weights[:, : k + 1] @ phi
        class_ -= q[i] * np.log(np.exp(logits) / np.exp(logits).sum())[batch.target[i]]
    orth = np.sum((c - np.eye(k + 1)) ** 2)
    w_class = np.exp(-orth / t_orth)
    w_mde = np.exp(-max(orth / t_orth, class_ / t_class))
    return orth + w_class * class_ + w_mde * mde, StepRecord(orth, class_, mde, 1.0, w_class, w_mde)


@pytest.mark.parametrize("t_class", [0.5, 50.0])
def test_loss_equals_the_papers_formulas_in_numpy(t_class, params, batch):
    objective = SequentialObjective(Dampened(t_orth=3.0, t_class=t_class))
    loss, record = value(objective, params, batch)
    expected_loss, expected_record = by_the_papers_formulas(params, batch, ACTIVE, 3.0, t_class)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-10)
    np.testing.assert_allclose(record, expected_record, rtol=1e-10)


def test_normalisation_of_the_weights_scales_the_loss(params, batch):
    raw, record = value(SequentialObjective(GENTLE), params, batch)
    normalised, _ = value(SequentialObjective(replace(GENTLE, normalize=True)), params, batch)
    np.testing.assert_allclose(normalised, raw / np.sum(record[3:]), rtol=1e-10)


def test_unsupervised_loss_knows_no_classes(params, batch):
    objective = SequentialObjective(Static(1, 0, 1), readout_loss=None)
    loss, record = value(objective, params, batch)
    assert float(record.loss_class) == 0
    np.testing.assert_allclose(loss, record.gram_error + record.loss_mde, rtol=1e-12)
    gradient = gradient_of(objective, params, batch)
    assert all(np.all(g == 0) for g in jax.tree.leaves(gradient.readout))


def test_readout_loss_can_be_the_users_own(params, batch):
    def squared(outputs, target):
        return (outputs[:, 0] - target) ** 2

    _, record = value(SequentialObjective(GENTLE, squared), params, batch)
    phi = batch.frozen.at[:, ACTIVE].set(params.phi(batch.x))
    losses = squared(params.readout(phi), batch.target)
    expected = np.average(losses, weights=batch.label_weight)
    np.testing.assert_allclose(record.loss_class, expected, rtol=1e-12)


def test_anisotropy_is_charged_on_top(params, batch):
    plain, _ = value(SequentialObjective(GENTLE), params, batch)
    charged, _ = value(SequentialObjective(GENTLE, anisotropy=0.3), params, batch)
    by_row = np.mean(np.asarray(params.metric.log_scales(batch.x)) ** 2, axis=1)
    penalty = np.average(by_row, weights=batch.weight)
    np.testing.assert_allclose(charged - plain, 0.3 * penalty, rtol=1e-9)


def test_population_gate_adds_the_active_row_to_the_frozen_maps_exact_error(params, batch):
    objective = SequentialObjective(GENTLE, population_gram=True)
    phi = batch.frozen.at[:, ACTIVE].set(params.phi(batch.x))
    row = float(split_gram_error(row_half_sums(phi, batch.weight, ACTIVE)))
    _, record = objective.after(ACTIVE, 0.25)(params, batch)
    np.testing.assert_allclose(record.gram_error, 0.25 + row, rtol=1e-10)
    np.testing.assert_allclose(record.w_class, np.exp(-max(0.25 + row, 0) / 5.0), rtol=1e-10)


def test_a_negative_estimate_opens_the_gate_no_further_than_zero_does(params, batch):
    objective = SequentialObjective(GENTLE, population_gram=True)
    _, record = objective.after(ACTIVE, -1e3)(params, batch)
    assert float(record.gram_error) < 0
    assert float(record.w_class) == 1


# --- its gradient ------------------------------------------------------------------------------


@jax.jit
def gradients(params, batch, constants):
    """Of the objective; with the weights held at `constants`; with weights that are followed."""

    def losses(params):
        _, record = LOSS(params, batch)
        return record.gram_error, record.loss_class, record.loss_mde

    def weighted(weights, losses):
        return sum(w * loss for w, loss in zip(weights, losses, strict=True))

    held = lambda params: weighted(constants, losses(params))  # noqa: E731
    followed = lambda params: weighted(GENTLE(*losses(params)[:2]), losses(params))  # noqa: E731
    ours, _ = jax.grad(LOSS, has_aux=True)(params, batch)
    return ours, jax.grad(held)(params), jax.grad(followed)(params)


def test_weights_are_constants_in_the_differentiation(params, batch):
    _, record = value(SequentialObjective(GENTLE), params, batch)
    assert 0.05 < float(record.w_mde) < 0.95
    ours, held, followed = gradients(params, batch, record[3:])
    assert_close(ours, held, rtol=1e-10, atol=1e-12)
    ours, followed = ravel_pytree(ours)[0], ravel_pytree(followed)[0]
    assert np.linalg.norm(ours - followed) > 0.1 * np.linalg.norm(ours)


def test_gradient_equals_finite_differences_with_the_weights_held(params, batch, rng):
    flat, unravel = ravel_pytree(params)

    @jax.jit
    def record_at(flat):
        return LOSS(unravel(flat), batch)[1]

    weights = np.array(record_at(flat)[3:])
    held = lambda flat: np.dot(weights, record_at(flat)[:3])  # noqa: E731
    gradient = ravel_pytree(gradient_of(SequentialObjective(GENTLE), params, batch))[0]
    for _ in range(5):
        direction = rng.normal(size=flat.shape)
        step = 1e-6 * direction
        slope = (held(flat + step) - held(flat - step)) / 2e-6
        np.testing.assert_allclose(np.dot(gradient, direction), slope, rtol=1e-6, atol=1e-7)


def test_no_gradient_reaches_a_frozen_map(params, batch):
    loss_at = lambda frozen: LOSS(params, batch._replace(frozen=frozen))[0]  # noqa: E731
    of_frozen = jax.jit(jax.grad(loss_at))(batch.frozen)
    assert np.all(of_frozen[:, :ACTIVE] != 0)  # there would be a gradient to follow
    of_params = gradient_of(SequentialObjective(GENTLE), params, batch)
    assert set(vars(of_params)) == {"phi", "metric", "readout"}
    assert jax.tree.structure(of_params) == jax.tree.structure(params)
    assert of_params.phi.net.weights[0].shape == (D, 5)  # one map, not a stack of them


def test_readout_columns_beyond_the_active_map_get_no_gradient(params, batch):
    gradient = gradient_of(SequentialObjective(GENTLE), params, batch)
    assert np.all(gradient.readout.weights[:, ACTIVE + 1 :] == 0)
    assert np.all(gradient.readout.weights[:, : ACTIVE + 1] != 0)


# --- descent -----------------------------------------------------------------------------------


def run(params, chunk, direction="adam", opt_state=None, **options):
    """`descend`, with options that do for most."""
    optimizer = Optimizer(direction, 0.0)
    opt_state = begun(optimizer, params) if opt_state is None else opt_state
    steps = Steps(first=0, n=3, total=7, learning_rate=0.05)._replace(**options)
    return descend(params, opt_state, chunk, LOSS, steps, optimizer=optimizer)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("adam", optax.adam), ("sgd", lambda schedule: optax.sgd(schedule, momentum=0.9))],
)
def test_descent_equals_optax_step_by_step_with_a_cosine_rate(name, reference, params, rng):
    chunk = make_chunk(rng, 4)
    optimizer = reference(optax.cosine_decay_schedule(0.05, 7))

    @jax.jit
    def step(params, opt_state, batch):
        gradient, record = jax.grad(LOSS, has_aux=True)(params, batch)
        updates, opt_state = optimizer.update(gradient, opt_state)
        return eqx.apply_updates(params, updates), opt_state, record

    expected, opt_state, records = params, optimizer.init(params), []
    for i in range(3):
        batch = jax.tree.map(lambda a, i=i: a[i], chunk)
        expected, opt_state, record = step(expected, opt_state, batch)
        records.append(record)
    ours, _, sums, _ = run(params, chunk, name)
    assert_close(ours, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sums, np.sum(records, axis=0), rtol=1e-9)


def test_descent_interrupted_between_chunks_is_the_same_descent(params, rng):
    chunk = make_chunk(rng, 4)
    tail = jax.tree.map(lambda a: jnp.roll(a, -2, axis=0), chunk)
    whole, *_ = run(params, chunk, n=4)
    halfway, opt_state, *_ = run(params, chunk, n=2)
    resumed, *_ = run(halfway, tail, opt_state=opt_state, first=2, n=2)
    assert_close(resumed, whole, rtol=1e-12)
    restarted, *_ = run(halfway, tail, opt_state=opt_state, first=0, n=2)
    assert not np.allclose(restarted.readout.bias, whole.readout.bias, rtol=1e-6)


def test_surplus_batches_of_a_chunk_are_not_used(params, rng):
    chunk = make_chunk(rng, 4)
    spoiled = chunk._replace(x=chunk.x.at[2:].set(jnp.nan))
    ours, *_ = run(params, spoiled, n=2)
    expected, *_ = run(params, chunk, n=2)
    assert_close(ours, expected, rtol=0, atol=0)


# --- its cost ----------------------------------------------------------------------------------


def lowered(n_components, k, n_classes=10, d=16, width=64, batch=32):
    """The step for maps of realistic width, lowered but not compiled."""
    sizes = (d, width, width, width, 1)
    weights = tuple(jnp.zeros(pair) for pair in pairwise(sizes))
    phi = ScalarMap(MLP(weights, tuple(jnp.zeros(size) for size in sizes[1:]), "relu"))
    params = Trainable(phi, Off(), init_readout(n_classes, n_components))
    chunk = Batch(
        jnp.zeros((2, batch, d)),
        jnp.zeros((2, batch, n_components)),
        jnp.zeros((2, batch), int),
        jnp.ones((2, batch)),
        jnp.ones((2, batch)),
    )
    return descend.lower(
        params,
        begun(Optimizer("adam", 0.0), params),
        chunk,
        SequentialObjective(Dampened(), k=k),
        Steps(0, 2, 2, 1e-3),
        optimizer=Optimizer("adam", 0.0),
    )


def test_step_is_one_program_for_every_k():
    first, last = lowered(8, k=0), lowered(8, k=7)
    assert first.as_text() == last.as_text()
    assert first.cost_analysis()["flops"] == last.cost_analysis()["flops"] > 0


def test_more_maps_cost_a_step_only_their_share_of_the_gram_matrix_and_readout():
    batch, n_classes, d, width = 32, 10, 16, 64
    few, many = (lowered(n, 0).cost_analysis()["flops"] for n in (2, 32))
    gram_and_readout = 6 * batch * 32**2 + 6 * batch * 32 * n_classes
    small_change = 20 * (batch * 32 + 32**2 + 32 * n_classes)
    one_forward_pass = 2 * batch * (d * width + 2 * width**2 + width)
    assert 0 < many - few <= gram_and_readout + small_change
    assert many - few < 0.1 * 30 * one_forward_pass
