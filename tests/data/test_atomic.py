"""Atomic writes."""

import json
import os
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from faults import full_disk
from piefs import Checkpoint, PIEFSClassifier
from piefs.core.trees import named_arrays
from piefs.data import atomic
from piefs.errors import StorageError
from piefs.training.checkpoint import previous


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.txt"
    atomic.write_bytes(path, b"old")

    def fail(temporary):
        temporary.write_bytes(b"half of the n")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        atomic.write_with(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_on_the_way_are_made(tmp_path):
    atomic.write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"


def test_json_is_strict_even_where_numbers_are_not_finite(tmp_path):
    atomic.write_json(tmp_path / "f.json", {"a": [float("nan"), float("inf"), 1.5], "b": "φ"})
    assert json.loads((tmp_path / "f.json").read_text()) == {"a": [None, None, 1.5], "b": "φ"}


def test_files_get_the_permissions_of_ordinary_files(tmp_path):
    (tmp_path / "ordinary").write_bytes(b"")
    atomic.write_bytes(tmp_path / "atomic", b"")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_full_disk_is_a_typed_error_that_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.bin"
    atomic.write_bytes(path, b"old")
    with full_disk(1000), pytest.raises(StorageError, match=r"file\.bin cannot be written.*whole"):
        atomic.write_bytes(path, bytes(5000))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_closed_to_us_is_a_typed_error():
    # Root may write to any folder of a disk, and nobody to this one.
    with pytest.raises(StorageError, match="cannot be written"):
        atomic.write_bytes(Path("/proc/piefs/file"), b"")


def test_content_and_name_are_flushed_before_a_write_is_over(tmp_path, monkeypatch):
    flushed, real = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: flushed.append(os.fstat(handle)) or real(handle)
    )
    path = tmp_path / "file"
    atomic.write_bytes(path, b"content")
    assert [one.st_ino for one in flushed] == [path.stat().st_ino, tmp_path.stat().st_ino]


def test_what_a_write_replaces_can_be_kept(tmp_path):
    path, kept = tmp_path / "file", tmp_path / "kept"
    for content in (b"1", b"2", b"3"):
        atomic.write_bytes(path, content, keep=kept)
    assert (path.read_bytes(), kept.read_bytes()) == (b"3", b"2")


def test_a_run_whose_disk_fills_up_goes_on_when_there_is_room(tmp_path, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    path = tmp_path / "checkpoint.safetensors"

    def fit(*callbacks):
        settings = {"n_components": 2, "steps_per_component": 30, "hidden": (4,), "log_every": 10}
        settings |= {"schedule": "sequential", "batch_size": 32, "random_state": 0}
        return PIEFSClassifier(**settings, callbacks=callbacks).fit(X, y)

    real = atomic.write_bytes

    def write_bytes(path, content, keep=None):
        with full_disk(100) if previous(path).exists() else nullcontext():
            real(path, content, keep)

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "write_bytes", write_bytes)
        with pytest.raises(StorageError):
            fit(Checkpoint(path, every_seconds=0))
    seen = []
    resumed = fit(Checkpoint(path, every_seconds=0, resume=True), seen.append)
    assert (seen[0].k, seen[0].step) == (0, 30)  # two checkpoints were written
    whole = named_arrays(fit().model_)
    assert all(
        np.array_equal(array, whole[name]) for name, array in named_arrays(resumed.model_).items()
    )
