from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_moons

import toys
from piefs.core.losses import gram_error
from piefs.core.maps import ScalarMap, init_map, n_maps, stack
from piefs.core.metric import MetricField, Off
from piefs.core.networks import generator
from piefs.core.objectives import StepRecord
from piefs.core.rotations import rotate
from piefs.core.weighting import Dampened, Static
from piefs.training.batches import Samples, Validation
from piefs.training.checks import SOLVERS
from piefs.training.evaluation import coordinates_of, energies_of
from piefs.training.loop import train
from piefs.training.state import WarmStart
from piefs.training.step import descend, objective_for

N, D, K = 120, 3, 3
CONFIG = toys.settings(
    n_components=K,
    steps_per_component=25,
    batch_size=32,
    learning_rate=1e-2,
    hidden=(8, 8),
    activation="tanh",
    metric="trotter",
    metric_hidden=(8,),
    weighting=Dampened(t_orth=1.0, t_class=5.0),
    log_every=10,
)
UNSUPERVISED = toys.changed(
    CONFIG, metric="diag", weighting=Static(1, 0, 1), steps_per_component=150, log_every=50
)


def moons(n, seed):
    """Two moons and, as a third feature, noise."""
    x, y = make_moons(n, noise=0.1, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=(n, 1))
    return np.hstack([x, noise]).astype(np.float32), y.astype(np.int32)


@pytest.fixture(scope="module")
def samples():
    return Samples(*moons(N, seed=0))


@pytest.fixture(scope="module")
def validation():
    x, y = moons(50, seed=1)
    return Validation(x, lambda logits: {"accuracy": float(np.mean(logits.argmax(axis=1) == y))})


class Recorder:
    """A callback that keeps every state, on the host."""

    def __init__(self):
        self.states = []

    def __call__(self, state):
        arrays = {
            name: jax.tree.map(np.array, getattr(state, name))
            for name in ("params", "opt_state", "frozen")
        }
        self.states.append(replace(state, **arrays))


def thawed(state):
    """The same state on the device again."""
    params, opt_state = jax.tree.map(jnp.array, (state.params, state.opt_state))
    return replace(state, params=params, opt_state=opt_state)


@pytest.fixture(scope="module")
def run(samples, validation):
    """The reference run and all its states."""
    recorder = Recorder()
    final = train(samples, CONFIG, n_outputs=2, validation=validation, callbacks=[recorder])
    return final, recorder.states


def at_freeze(states):
    return [state for state in states if state.step == 0]


def assert_identical(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(a, b)


def assert_same_state(left, right):
    for name in ("params", "opt_state", "frozen"):
        assert_identical(getattr(left, name), getattr(right, name))
    for name in ("k", "step", "energies", "log_scale_ranges", "steps", "interval", "history"):
        assert getattr(left, name) == getattr(right, name)


def is_identical(left, right):
    leaves = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


# --- Algorithm 1 -------------------------------------------------------------------------------


def test_run_ends_with_all_maps_frozen(run):
    final, _ = run
    assert (final.k, final.step) == (K, 0)
    assert len(final.frozen) == len(final.energies) == len(final.log_scale_ranges) == K
    assert n_maps(final.maps) == K


def test_frozen_maps_stay_bit_identical(run):
    final, states = run
    assert [len(state.frozen) for state in at_freeze(states)] == [1, 2, 3]
    for state in states:
        assert_identical(state.frozen, final.frozen[: len(state.frozen)])


def test_map_is_frozen_as_it_was_after_its_last_step(run):
    _, states = run
    last_steps = [s for s in states if s.step == CONFIG.steps_per_component]
    for done, frozen in zip(last_steps, at_freeze(states), strict=True):
        assert_identical(done.params.phi, frozen.frozen[-1])


def test_metric_and_readout_carry_on_while_the_map_and_the_optimiser_start_afresh(run):
    _, states = run
    last_steps = [s for s in states if s.step == CONFIG.steps_per_component]
    for done, begun in list(zip(last_steps, at_freeze(states), strict=True))[:-1]:
        assert_identical(begun.params.metric, done.params.metric)
        assert_identical(begun.params.readout, done.params.readout)
        assert not is_identical(begun.params.phi, done.params.phi)
        assert any(np.any(leaf != 0) for leaf in jax.tree.leaves(done.opt_state))
        assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(begun.opt_state))


def test_metric_and_readout_keep_learning_with_every_map(run):
    _, states = run
    first, second, third = at_freeze(states)
    for name in ("metric", "readout"):
        before, then, after = (getattr(s.params, name) for s in (first, second, third))
        assert not is_identical(before, then)
        assert not is_identical(then, after)


def test_callbacks_see_every_chunk_and_every_frozen_map(run):
    _, states = run
    assert [(s.k, s.step) for s in states] == [
        (k + (step == 0), step) for k in range(K) for step in (10, 20, 25, 0)
    ]


def test_readout_ignores_maps_that_are_not_yet_trained(run):
    _, states = run
    for state in states:
        active = state.k + (state.step > 0)
        assert np.all(state.params.readout.weights[:, active:] == 0)
        assert np.all(state.params.readout.weights[:, :active] != 0)


@pytest.mark.parametrize("metric", ["trotter", "cayley"])  # test_rotations.py has them all
def test_rotation_stays_orthogonal_and_scales_of_determinant_one_during_training(metric, samples):
    x, checked = samples.x[:5], []

    @jax.jit
    def factors(metric, x):
        angles = jnp.repeat(metric.rotation.squash((metric.angle_net(x),))[0], D, axis=0)
        rows = rotate(metric.rotation, angles, jnp.tile(jnp.eye(D), (len(x), 1)))
        return (
            rows.reshape(-1, D, D),
            metric.log_scales(x),
            metric.rotation.squash((metric.angle_net(x),))[0],
        )

    def check(state):
        u, log_scales, angles = map(np.asarray, factors(state.params.metric, x))
        np.testing.assert_allclose(
            u @ u.transpose(0, 2, 1), np.tile(np.eye(D), (5, 1, 1)), atol=1e-5
        )
        np.testing.assert_allclose(np.linalg.det(u), 1, atol=1e-5)
        np.testing.assert_allclose(np.prod(np.exp(log_scales), axis=1), 1, atol=1e-5)
        checked.append((np.abs(angles).max(), np.abs(log_scales).max()))

    train(samples, toys.changed(CONFIG, metric=metric), n_outputs=2, callbacks=[check])
    assert len(checked) == 4 * K
    assert np.min(checked) > 1e-3  # neither factor was the identity


def test_energies_are_those_under_the_metric_at_freeze_time(run, samples):
    final, states = run
    for state in at_freeze(states):
        (expected,) = energies_of(stack([state.frozen[-1]]), state.params.metric, samples)
        assert state.energies[-1] == pytest.approx(expected, rel=1e-6)
    (under_the_final_metric,) = energies_of(stack([final.frozen[0]]), final.params.metric, samples)
    assert final.energies[0] != pytest.approx(under_the_final_metric, rel=1e-3)


# --- reproducibility ---------------------------------------------------------------------------


def test_same_seed_gives_identical_bits(run, samples, validation):
    final, _ = run
    assert_same_state(train(samples, CONFIG, n_outputs=2, validation=validation), final)


def test_validation_and_callbacks_do_not_touch_the_training(run, samples):
    final, _ = run
    assert_identical(train(samples, CONFIG, n_outputs=2).frozen, final.frozen)


def test_different_seed_gives_a_different_run(run, samples):
    final, _ = run
    other = train(samples, toys.changed(CONFIG, seed=1), n_outputs=2)
    for a, b in zip(other.frozen, final.frozen, strict=True):
        assert not is_identical(a, b)


def test_run_resumed_from_any_state_ends_in_the_same_bits(run, samples, validation):
    final, states = run
    assert len(states) == 4 * K
    for state in states:
        resumed = train(samples, CONFIG, n_outputs=2, validation=validation, state=thawed(state))
        assert_same_state(resumed, final)


def test_one_compilation_serves_all_maps_and_any_number_of_rows():
    config = toys.changed(CONFIG, metric="off", batch_size=13)  # a shape no other test has compiled
    before = descend._cache_size()
    for n in (40, 57):
        train(Samples(*moons(n, seed=0)), config, n_outputs=2)
        assert descend._cache_size() == before + 1


def test_batch_larger_than_the_data_is_clipped_to_it():
    samples = Samples(*moons(32, seed=0))
    clipped, exact = (
        train(samples, toys.changed(CONFIG, batch_size=size), n_outputs=2) for size in (1000, 32)
    )
    assert_same_state(clipped, exact)


# --- what is recorded --------------------------------------------------------------------------


def test_history_rows_name_losses_weights_and_the_validation_score(run):
    final, _ = run
    keys = {"step", "map", "gram_error", "gram_residual", "loss_class", "loss_mde"}
    keys |= {"w_orth", "w_class", "w_mde", "accuracy"}
    assert all(set(row) == keys for row in final.history)
    assert [row["step"] for row in final.history] == [10, 20, 25, 35, 45, 50, 60, 70, 75]
    assert [row["map"] for row in final.history] == [1] * 3 + [2] * 3 + [3] * 3
    for row in final.history:
        assert row["gram_residual"] == pytest.approx(row["gram_error"] ** 0.5)
        assert row["w_orth"] == 1
        assert 0 < row["w_mde"] <= row["w_class"] < 1
        assert all(np.isfinite(value) for value in row.values())


def test_history_does_not_depend_on_the_length_of_chunks(run, samples, validation, monkeypatch):
    final, _ = run
    monkeypatch.setattr("piefs.training.batches.chunk_length", lambda *shape: 5)
    in_short_chunks = train(samples, CONFIG, n_outputs=2, validation=validation)
    assert len(in_short_chunks.history) == len(final.history)
    for ours, theirs in zip(in_short_chunks.history, final.history, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_history_holds_means_over_the_steps_of_an_interval(run, samples):
    final, _ = run
    finer = train(samples, toys.changed(CONFIG, log_every=5), n_outputs=2).history
    for row in (row for row in final.history if row["step"] % 25 != 0):
        halves = [other for other in finer if row["step"] - 10 < other["step"] <= row["step"]]
        assert len(halves) == 2
        for name in StepRecord._fields:
            mean = np.mean([half[name] for half in halves])
            assert row[name] == pytest.approx(mean, rel=1e-4)


def test_validation_score_is_taken_from_the_maps_so_far(samples):
    x, _ = moons(50, seed=1)
    seen, recorder = [], Recorder()
    validation = Validation(x, lambda outputs: seen.append(outputs) or {})
    train(samples, CONFIG, n_outputs=2, validation=validation, callbacks=[recorder])
    trained = [state for state in recorder.states if state.step > 0]
    assert len(seen) == len(trained)
    for outputs, state in zip(seen, trained, strict=True):
        phi = np.zeros((50, K), np.float32)
        for j, one in enumerate((*state.frozen, state.params.phi)):
            phi[:, j] = one(x)
        np.testing.assert_allclose(outputs, state.params.readout(phi), rtol=1e-4, atol=1e-5)


# --- budgets ----------------------------------------------------------------------------------


def test_maps_spend_their_whole_budget_without_patience(run):
    final, _ = run
    assert final.steps == (25,) * K


@pytest.mark.parametrize(("asks", "n_steps"), [((0, 10), 10), ((1, 0), 25)])
def test_a_callback_that_returns_true_ends_the_run_with_the_maps_there_are(samples, asks, n_steps):
    seen = []

    def ask(state):
        seen.append((state.k, state.step))
        return seen[-1] == asks

    final = train(samples, CONFIG, n_outputs=2, callbacks=[ask])
    assert asks in seen
    assert final.k == len(final.frozen) == n_maps(final.maps) == 1  # of three
    assert final.steps == (n_steps,)


def test_a_state_can_be_resumed_from_twice(samples):
    recorder = Recorder()
    train(samples, CONFIG, n_outputs=2, callbacks=[recorder])
    first, second = (train(samples, CONFIG, n_outputs=2, state=recorder.states[1]) for _ in "ab")
    for a, b in zip(jax.tree.leaves(first.frozen), jax.tree.leaves(second.frozen), strict=True):
        np.testing.assert_array_equal(a, b)


# --- what it achieves --------------------------------------------------------------------------


def test_two_moons_are_told_apart_by_two_maps():
    config = toys.settings(
        n_components=2,
        steps_per_component=1000,
        batch_size=128,
        learning_rate=1e-2,
        hidden=(32, 32),
        activation="tanh",
    )
    (x, y), (x_test, y_test) = moons(400, seed=0), moons(400, seed=1)
    validation = Validation(
        x_test[:, :2],
        lambda logits: {"accuracy": float(np.mean(logits.argmax(axis=1) == y_test))},
    )
    final = train(Samples(x[:, :2], y), config, n_outputs=2, validation=validation)
    assert final.history[-1]["accuracy"] > 0.97
    assert final.history[-1]["gram_error"] < 0.2


def gram_error_on(maps, x):
    phi = coordinates_of(maps, x)
    return float(gram_error(phi.T @ phi / len(phi)))


def test_unsupervised_training_makes_the_maps_orthonormal(samples):
    wide = Samples(3 * samples.x)
    idle = train(wide, toys.changed(UNSUPERVISED, learning_rate=0.0), readout_loss=None)
    trained = train(wide, UNSUPERVISED, readout_loss=None)
    assert gram_error_on(trained.maps, wide.x) < 0.3 < gram_error_on(idle.maps, wide.x)
    assert all(row["loss_class"] == 0 and row["w_class"] == 0 for row in trained.history)
    assert trained.history[-1]["gram_error"] < 0.5


def test_anisotropy_penalty_narrows_the_range_of_log_scales(samples):
    widths = []
    for strength in (0.0, 1.0):
        final = train(samples, toys.changed(UNSUPERVISED, anisotropy=strength), readout_loss=None)
        low, high = final.log_scale_ranges[-1]
        assert low < 0 < high
        widths.append(high - low)
    assert widths[1] < 0.5 * widths[0]


# --- what users bring along --------------------------------------------------------------------


class Shared(MetricField):
    """A user's own: one matrix for all points."""

    matrix: jax.Array

    def apply(self, x, v):
        return v.mapped_by(lambda rows: rows @ self.matrix.T)

    def log_scales(self, x):
        logs = jnp.log(jnp.linalg.svd(self.matrix, compute_uv=False))
        return jnp.broadcast_to(logs[None], x.shape)


def test_metric_of_the_users_own_trains_like_any_other(samples):
    config = toys.changed(CONFIG, n_components=2, metric=lambda key, d: Shared(2 * jnp.eye(d)))
    recorder = Recorder()
    final = train(samples, config, n_outputs=2, callbacks=[recorder])
    matrix = np.asarray(final.params.metric.matrix)
    assert np.abs(matrix - 2 * np.eye(D)).max() > 1e-2
    low, high = final.log_scale_ranges[-1]
    singular = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(np.exp([low, high]), [singular.min(), singular.max()], rtol=1e-4)
    first = at_freeze(recorder.states)[0]
    _, gradient = first.frozen[0].value_and_gradient(samples.x)
    vectors = np.asarray(gradient.dense()) @ np.asarray(first.params.metric.matrix).T
    assert first.energies[0] == pytest.approx(np.mean(np.sum(vectors**2, axis=1)), rel=1e-4)


def test_factory_may_hand_out_the_same_metric_twice(samples):
    shared = Shared(2 * jnp.eye(D))
    config = toys.changed(CONFIG, n_components=2, metric=lambda key, d: shared)
    train(samples, config, n_outputs=2)
    np.testing.assert_array_equal(shared.matrix, 2 * np.eye(D))


@pytest.fixture(scope="module")
def initial_maps():
    return [init_map(generator(100 + k), D, (8, 8), "tanh", np.float32) for k in range(K)]


def test_warm_start_is_where_training_starts(samples, initial_maps, run):
    final, _ = run
    warm_start = WarmStart(initial_maps, final.params.metric, final.params.readout)
    config = toys.changed(CONFIG, learning_rate=0.0)
    idle = train(samples, config, n_outputs=2, warm_start=warm_start)
    for given, frozen in zip(initial_maps, idle.frozen, strict=True):
        assert_identical(given, frozen)
    assert_identical(idle.params.metric, final.params.metric)
    assert_identical(idle.params.readout, final.params.readout)


def test_warm_start_survives_training(samples, initial_maps, run):
    final, _ = run
    parts = (initial_maps, final.params.metric, final.params.readout)
    before = jax.tree.map(np.array, parts)
    trained = train(samples, CONFIG, n_outputs=2, warm_start=WarmStart(*parts))
    assert_identical(before, jax.tree.map(np.asarray, parts))
    for given, warm, cold in zip(initial_maps, trained.frozen, final.frozen, strict=True):
        assert not is_identical(given, warm)
        assert not is_identical(cold, warm)


def test_warm_start_of_the_maps_alone_leaves_metric_and_readout_fresh(samples, initial_maps):
    idle, cold = (
        train(samples, toys.changed(CONFIG, learning_rate=0.0), n_outputs=2, warm_start=warm_start)
        for warm_start in (WarmStart(initial_maps), None)
    )
    assert_identical(idle.params.metric, cold.params.metric)
    assert_identical(idle.params.readout, cold.params.readout)


def test_rows_of_weight_zero_do_not_influence_the_maps():
    x, y = moons(32, seed=0)
    weight = np.ones(32, np.float32)
    weight[25:] = 0
    finals = []
    for spoiled in (1.0, 5.0):
        moved = np.where(weight[:, None] > 0, x, spoiled * x).astype(np.float32)
        finals.append(train(Samples(moved, y, weight, weight), CONFIG, n_outputs=2))
    assert_identical(finals[0].frozen, finals[1].frozen)


def test_one_feature_trains_with_every_named_metric():
    x, y = moons(40, seed=0)
    for metric in ("off", "trotter"):
        config = toys.changed(CONFIG, metric=metric)
        final = train(Samples(x[:, :1], y), config, n_outputs=2)
        assert isinstance(final.params.metric, Off)
        assert final.log_scale_ranges == ((0, 0),) * K


def test_sgd_trains_too(samples):
    config = toys.changed(CONFIG, metric="off", optimizer="sgd")
    final = train(samples, config, n_outputs=2)
    first, *_, last = (row["gram_error"] for row in final.history if row["map"] == 1)
    assert last < 0.5 * first


def test_frozen_maps_are_plain_maps_without_the_other_parameters(run):
    final, _ = run
    assert all(isinstance(phi, ScalarMap) for phi in final.frozen)
    shapes = [a.shape for a in jax.tree.leaves(eqx.filter(final.frozen[0], eqx.is_array))]
    assert shapes == [(D, 8), (8, 8), (8, 1), (8,), (8,), (1,)]


@pytest.mark.parametrize(("batch_size", "is_of_population"), [(1, False), (2, True), (10, False)])
def test_batches_of_one_row_or_of_all_have_their_own_gram_matrix(batch_size, is_of_population):
    config = toys.changed(CONFIG, gram="population", batch_size=batch_size)
    ten_rows = Samples(np.zeros((10, D)))
    for schedule in ("sequential", "joint"):
        objective = objective_for(toys.changed(config, schedule=schedule), None, ten_rows)
        assert objective.population_gram is is_of_population


def test_weights_say_how_many_rows_the_gram_error_of_batches_stands_for():
    config = toys.changed(CONFIG, gram="population", batch_size=2)
    x, uneven = np.zeros((10, D)), np.repeat([1.0, 0.0], 5)
    for schedule in ("sequential", "joint"):
        of_schedule = toys.changed(config, schedule=schedule)
        assert objective_for(of_schedule, None, Samples(x)).n_rows == 10
        assert objective_for(of_schedule, None, Samples(x, weight=uneven)).n_rows == 5


@pytest.mark.parametrize("schedule", SOLVERS)
def test_the_anisotropy_penalty_is_in_everyobjective_for(schedule):
    config = toys.changed(CONFIG, schedule=schedule, anisotropy=0.3)
    assert objective_for(config, None, Samples(np.zeros((10, D)))).anisotropy == 0.3


def test_a_population_gate_stays_open_where_the_noise_of_small_batches_closes_it(rng):
    """At batch 32 the Gram error of six orthonormal maps is about 1 by sampling noise alone."""
    x = rng.normal(size=(512, 2)).astype(np.float32)
    samples = Samples(x, (x[:, 0] > 0).astype(np.int32))

    def last_gate(gram):
        config = toys.settings(
            n_components=6,
            steps_per_component=60,
            batch_size=32,
            hidden=(8,),
            gram=gram,
            activation="tanh",
            learning_rate=1e-2,
            log_every=30,
        )
        return train(samples, config, n_outputs=2).history[-1]["w_class"]

    assert last_gate("population") > 3 * last_gate("batch")
