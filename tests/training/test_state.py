"""Numbers that do not stay finite: steps taken again at a smaller rate, or an error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_moons

import toys
from piefs import Checkpoint, PIEFSClassifier
from piefs.core.losses import cross_entropy
from piefs.core.objectives import JointObjective
from piefs.errors import DivergedError, TrainingWarning
from piefs.training.batches import Samples, gather
from piefs.training.loop import train
from piefs.training.sharding import devices_of
from piefs.training.state import MOST_RATE_CUTS, RATE_CUT, initial_state, rate_in_force
from piefs.training.step import Steps, descend

SCHEDULES = ("sequential", "joint", "nested", "spectral")
HASTY = toys.settings(  # momentum at this rate overflows within a few steps, at a 64th it learns
    n_components=2,
    steps_per_component=40,
    batch_size=32,
    hidden=(8, 8),
    activation="silu",
    log_every=10,
    learning_rate=30.0,
    optimizer="sgd",
)


@pytest.fixture(scope="module")
def rows():
    x, y = make_moons(120, noise=0.1, random_state=0)
    return x.astype(np.float32), y.astype(np.int32)


def trained(rows, config, devices=None, **keywords):
    x, y = rows
    is_spectral = config.solver == "spectral"
    samples = Samples(x, x if is_spectral else y, devices=devices_of(devices))
    loss = None if is_spectral else cross_entropy
    n_outputs = 0 if is_spectral else 2
    return train(samples, config, n_outputs=n_outputs, readout_loss=loss, **keywords)


def same_bits(left, right):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module", params=SCHEDULES)
def run(request, rows):
    """The final state of a run that had to be slowed down, its config, and all states before."""
    states = []
    config = toys.changed(HASTY, schedule=request.param)
    return trained(rows, config, callbacks=[states.append]), config, states


def test_steps_that_leave_the_finite_numbers_are_taken_again_at_a_smaller_rate(run):
    final, config, states = run
    assert 0 < len(final.rate_cuts) <= MOST_RATE_CUTS
    assert rate_in_force(final, config) == 30.0 / RATE_CUT ** len(final.rate_cuts)
    assert sum(final.steps) == config.total_steps
    assert all(np.isfinite(list(row.values())).all() for row in final.history)
    for state in states:
        leaves = jax.tree.leaves((state.params, state.opt_state))
        assert all(np.isfinite(a).all() for a in leaves)


def test_a_run_resumed_after_a_cut_ends_in_the_same_bits(run, rows):
    final, config, states = run
    for state in (states[0], states[2]):
        resumed = trained(rows, config, state=state)
        assert same_bits(resumed.frozen, final.frozen)
        assert resumed.rate_cuts == final.rate_cuts
        assert resumed.history == final.history


def test_devices_that_share_a_batch_cut_the_rate_alike(rows):
    alone, together = (trained(rows, HASTY, devices=n) for n in (None, 1))
    assert alone.rate_cuts == together.rate_cuts


def test_a_moment_that_overflows_is_seen_while_losses_are_finite(rows):
    x, y = rows
    config = toys.changed(HASTY, schedule="joint", optimizer="adam")
    state = initial_state(Samples(x, y), config, 2)
    chunk = gather(Samples(x, y), np.zeros((120, 2), np.float32), np.arange(64), (2, 32))
    adam = state.opt_state
    spoiled = replace_leaf(adam.nu, np.inf)
    for opt_state, expected in ((adam, True), (adam._replace(nu=spoiled), False)):
        *_, sums, is_finite = descend(
            state.params,
            opt_state,
            chunk,
            JointObjective(0.1, 1e-3),
            Steps(0, 2, 2, 1e-3),
            optimizer=config.optimizer.rule,
        )
        assert np.isfinite(sums).all()
        assert bool(is_finite) is expected


def replace_leaf(tree, value):
    """The tree with one number of its first array replaced."""
    leaves, structure = jax.tree.flatten(tree)
    first = jnp.asarray(leaves[0]).ravel().at[0].set(value).reshape(leaves[0].shape)
    return structure.unflatten([first, *leaves[1:]])


def test_rates_are_cut_a_bounded_number_of_times_then_an_error_says_what_to_do(rows):
    config = toys.changed(HASTY, learning_rate=1e8)
    with pytest.raises(DivergedError, match=r"down to 9.8e\+04.*lower learning_rate") as failed:
        trained(rows, config)
    state = failed.value.state
    assert state.rate_cuts == (0,) * MOST_RATE_CUTS
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(state.params))


def test_an_estimator_warns_once_of_a_cut_and_goes_on_from_a_checkpoint_after_it(rows, tmp_path):
    settings = {"n_components": 2, "steps_per_component": 40, "batch_size": 32, "hidden": (8, 8)}
    settings |= {"learning_rate": 30.0, "optimizer": "sgd", "warmup": 0.0, "log_every": 10}
    settings = toys.flat(**settings, early_stopping=False, random_state=0, schedule="nested")
    cuts = []

    class CutError(Exception):
        pass

    def fitted(**keywords):
        with pytest.warns(TrainingWarning, match="smaller learning rate") as told:
            model = PIEFSClassifier(**settings, **keywords).fit(*rows)
        assert sum("smaller learning rate" in str(w.message) for w in told) == 1
        return model

    def end_after_a_cut(state):
        cuts.extend(state.rate_cuts)
        if state.step == 20:
            raise CutError

    whole = fitted()
    assert [f.kind for f in whole.warnings_ if not f.bad] == ["rate-cut"]
    checkpoint = Checkpoint(tmp_path / "run", every_seconds=0)
    with pytest.raises(CutError):
        PIEFSClassifier(**settings, callbacks=[checkpoint, end_after_a_cut]).fit(*rows)
    assert cuts
    resumed = fitted(callbacks=[Checkpoint(tmp_path / "run", resume=True)])
    assert same_bits(resumed.model_, whole.model_)
