"""Checkpoints: a run cut off anywhere ends where it would have ended."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from faults import full_disk
from piefs import Checkpoint, PIEFSClassifier
from piefs.core.trees import named_arrays
from piefs.errors import CheckpointError, InputError, StorageError, TrainingWarning
from piefs.training import checkpoint as module
from piefs.training.checkpoint import previous
from toys import flat

SMALL = {
    "schedule": "sequential",
    "n_components": 3,
    "steps_per_component": 40,
    "batch_size": 32,
    "hidden": (8, 8),
    "metric_hidden": (8,),
    "random_state": 0,
    "log_every": 15,
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


class CutError(Exception):
    """Stands for a crash."""


def cut_after(n_calls):
    calls = []

    def callback(state):
        calls.append(state)
        if len(calls) == n_calls:
            raise CutError

    return callback


def fit(rows, *callbacks, **keywords):
    model = PIEFSClassifier(**flat(**SMALL | keywords, callbacks=callbacks))
    return model.fit(*rows, validation_data=rows)


def same(first, second):
    a, b = named_arrays(first.model_), named_arrays(second.model_)
    return all(np.array_equal(a[name], b[name]) for name in a)


# 3 maps of 3 chunks (15, 15, 10 steps) and a freeze each: 12 calls
@pytest.mark.parametrize(
    "n_calls", [5, 8, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3, 4, 11, 12))]
)
@pytest.mark.parametrize(
    "keywords",
    [{"metric": "trotter"}, pytest.param({"dtype": "float64"}, marks=pytest.mark.slow)],
)
def test_a_resumed_run_ends_at_the_same_model_history_and_energies(
    rows, tmp_path, n_calls, keywords
):
    path = tmp_path / "checkpoint"
    whole = fit(rows, **keywords)
    with pytest.raises(CutError):
        fit(rows, Checkpoint(path, every_seconds=0), cut_after(n_calls), **keywords)
    resumed = fit(rows, Checkpoint(path, every_seconds=0, resume=True), **keywords)
    assert same(resumed, whole)
    assert resumed.history_ == whole.history_
    assert np.array_equal(resumed.energies_, whole.energies_)


# all 3 maps at once: 3 chunks and one freeze
@pytest.mark.parametrize(
    "n_calls", [1, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_a_resumed_nested_run_ends_at_the_same_model(rows, tmp_path, n_calls):
    path = tmp_path / "checkpoint"
    nested = {"schedule": "nested", "early_stopping": False}
    whole = fit(rows, **nested)
    with pytest.raises(CutError):
        fit(rows, Checkpoint(path, every_seconds=0), cut_after(n_calls), **nested)
    seen = []
    checkpoint = Checkpoint(path, every_seconds=0, resume=True)
    resumed = fit(rows, checkpoint, lambda state: seen.append(state.step), **nested)
    assert same(resumed, whole)
    assert resumed.history_ == whole.history_
    assert len(seen) == 4 - n_calls  # it did not start over


@pytest.mark.slow
def test_a_run_whose_steps_are_chosen_resumes_to_the_same_model(rows, tmp_path):
    path = tmp_path / "checkpoint"
    nested = {"schedule": "nested", "early_stopping": True, "steps_per_component": 150}
    calls = []
    whole = fit(rows, calls.append, **nested)
    with pytest.raises(CutError):
        fit(rows, Checkpoint(path, every_seconds=0), cut_after(len(calls) - 1), **nested)
    resumed = fit(rows, Checkpoint(path, every_seconds=0, resume=True), **nested)
    assert same(resumed, whole)
    assert resumed.n_iter_ == whole.n_iter_


def test_resuming_does_not_start_over(rows, tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.raises(CutError):
        fit(rows, Checkpoint(path, every_seconds=0), cut_after(8))
    seen = []
    fit(rows, Checkpoint(path, resume=True), lambda state: seen.append((state.k, state.step)))
    assert seen[0] == (2, 15)


def test_without_resume_a_checkpoint_is_ignored(rows, tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.raises(CutError):
        fit(rows, Checkpoint(path, every_seconds=0), cut_after(8))
    seen = []
    fit(rows, Checkpoint(path), lambda state: seen.append((state.k, state.step)))
    assert seen[0] == (0, 15)


def test_resuming_without_a_file_starts_from_the_beginning(rows, tmp_path):
    assert same(fit(rows, Checkpoint(tmp_path / "none", resume=True)), fit(rows))


@pytest.fixture(scope="module")
def cut_off(rows, tmp_path_factory):
    """The files of a run that was cut off after its sixth call."""
    folder = tmp_path_factory.mktemp("cut")
    with pytest.raises(CutError):
        fit(rows, Checkpoint(folder / "checkpoint", every_seconds=0), cut_after(6))
    return folder


@pytest.fixture
def checkpoint(cut_off, tmp_path):
    return Path(shutil.copytree(cut_off, tmp_path / "run")) / "checkpoint"


@pytest.mark.parametrize(
    ("change", "said"),
    [({"learning_rate": 1e-4}, "learning_rate"), ({"random_state": 1}, "seed")],
)
def test_another_runs_checkpoint_is_refused_by_name(rows, checkpoint, change, said):
    with pytest.raises(InputError, match=said):
        fit(rows, Checkpoint(checkpoint, resume=True), **change)


def test_a_checkpoint_of_other_data_is_refused(rows, checkpoint):
    X, y = rows
    with pytest.raises(InputError, match="other data"):
        fit((X + 1e-3 * np.arange(len(X))[:, None], y), Checkpoint(checkpoint, resume=True))


def test_damage_is_noticed_and_the_checkpoint_before_is_taken(rows, checkpoint):
    whole, content = fit(rows), checkpoint.read_bytes()
    for damaged in (b"", content[:50], content[:-3], content[:-1] + bytes([content[-1] ^ 1])):
        checkpoint.write_bytes(damaged)
        seen = []
        with pytest.warns(TrainingWarning, match=r"damaged.*goes on from the checkpoint before"):
            resumed = fit(
                rows, Checkpoint(checkpoint, resume=True, every_seconds=1000), seen.append
            )
        assert same(resumed, whole)
        assert (seen[0].k, seen[0].step) == (1, 30)  # from the fifth call, not from the sixth


def test_if_all_checkpoints_are_damaged_they_stay_and_the_error_says_what_to_do(rows, checkpoint):
    files = [checkpoint, previous(checkpoint)]
    for path in files:
        path.write_bytes(path.read_bytes()[:-3])
    before = [path.read_bytes() for path in files]
    with pytest.raises(CheckpointError, match=r"damaged.*--force"):
        fit(rows, Checkpoint(checkpoint, resume=True))
    assert [path.read_bytes() for path in files] == before


def test_a_run_cut_between_two_names_goes_on_from_the_checkpoint_before(rows, checkpoint):
    checkpoint.unlink()
    seen = []
    fit(rows, Checkpoint(checkpoint, resume=True), seen.append)
    assert (seen[0].k, seen[0].step) == (1, 30)


def test_writes_are_spaced_in_time(rows, tmp_path):
    path = tmp_path / "checkpoint"
    fit(rows, Checkpoint(path, every_seconds=1000))
    assert not path.exists()


def test_time_of_earlier_sittings_counts(rows, checkpoint):
    header = int.from_bytes(checkpoint.read_bytes()[:8], "little")
    metadata = json.loads(checkpoint.read_bytes()[8 : 8 + header])["__metadata__"]["piefs"]
    before = json.loads(metadata)["seconds"]
    resumed = Checkpoint(checkpoint, resume=True)
    fit(rows, resumed)
    assert resumed.seconds_before == before
    assert resumed.seconds > before > 0


def test_a_run_whose_disk_fills_up_goes_on_when_there_is_room(rows, tmp_path, monkeypatch):
    path, real = tmp_path / "checkpoint.safetensors", module.write_bytes

    def write_bytes(path, content, keep=None):
        with full_disk(100) if previous(path).exists() else nullcontext():
            real(path, content, keep)

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_bytes", write_bytes)
        with pytest.raises(StorageError):
            fit(rows, Checkpoint(path, every_seconds=0))
    seen = []
    resumed = fit(rows, Checkpoint(path, every_seconds=0, resume=True), seen.append)
    assert (seen[0].k, seen[0].step) == (0, 40)  # two checkpoints were written, and then the third
    assert same(resumed, fit(rows))
