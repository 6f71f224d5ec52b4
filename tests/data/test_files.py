"""Whole-or-nothing writes, bounded reads, locks, and models as folders."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from faults import full_disk
from piefs.data import files
from piefs.data.files import (
    DOCUMENT,
    LOCK,
    WEIGHTS,
    described,
    held,
    parse_json,
    read_document,
    read_folder,
    reading,
    write_folder,
)
from piefs.errors import DamagedDataError, InputError, ModelFileError, StorageError


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.txt"
    files.write_bytes(path, b"old")

    def fail(temporary):
        temporary.write_bytes(b"half of the n")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write_with(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_on_the_way_are_made(tmp_path):
    files.write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"


def test_json_is_strict_even_where_numbers_are_not_finite(tmp_path):
    files.write_json(tmp_path / "f.json", {"a": [float("nan"), float("inf"), 1.5], "b": "φ"})
    assert json.loads((tmp_path / "f.json").read_text()) == {"a": [None, None, 1.5], "b": "φ"}


def test_files_get_the_permissions_of_ordinary_files(tmp_path):
    (tmp_path / "ordinary").write_bytes(b"")
    files.write_bytes(tmp_path / "atomic", b"")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_full_disk_is_a_typed_error_that_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.bin"
    files.write_bytes(path, b"old")
    with full_disk(1000), pytest.raises(StorageError, match=r"file\.bin cannot be written.*whole"):
        files.write_bytes(path, bytes(5000))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_closed_to_us_is_a_typed_error():
    # Root may write to any folder of a disk, and nobody to this one.
    with pytest.raises(StorageError, match="cannot be written"):
        files.write_bytes(Path("/proc/piefs/file"), b"")


def test_content_and_name_are_flushed_before_a_write_is_over(tmp_path, monkeypatch):
    flushed, real = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: flushed.append(os.fstat(handle)) or real(handle)
    )
    path = tmp_path / "file"
    files.write_bytes(path, b"content")
    assert [one.st_ino for one in flushed] == [path.stat().st_ino, tmp_path.stat().st_ino]


def test_what_a_write_replaces_can_be_kept(tmp_path):
    path, kept = tmp_path / "file", tmp_path / "kept"
    for content in (b"1", b"2", b"3"):
        files.write_bytes(path, content, keep=kept)
    assert (path.read_bytes(), kept.read_bytes()) == (b"3", b"2")


# --- reading -----------------------------------------------------------------------------------


def test_a_sound_document_is_read_unchanged(tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"a": [1, -2.5, "φ", null], "b": {"c": 18446744073709551615}}')
    assert read_document(path) == {"a": [1, -2.5, "φ", None], "b": {"c": 2**64 - 1}}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "3", "null", "{", '{"a": NaN}', '{"a": -1e999}', '{"a": 18446744073709551616}'),
        *('{"a": ' + "1" * 100_000 + "}", '{"a": "\\ud800"}', '{"a":' * 100_000, "\x00"),
    ],
)
def test_what_is_no_document_is_an_error_that_names_the_file_and_a_remedy(tmp_path, text):
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"d\.json is damaged \(.*\); fit again"):
        read_document(path, "fit again")


def test_files_that_are_too_large_or_no_files_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "d.json"
    path.write_text('{"a": "' + "x" * 1000 + '"}')
    monkeypatch.setattr(files.bounded_text, "__defaults__", (100,))
    for name, said in (("d.json", "more than 100"), ("none.json", "No such"), (".", "no ordinary")):
        with pytest.raises(InputError, match=said):
            read_document(tmp_path / name)


def test_an_error_that_says_more_passes(tmp_path):
    with pytest.raises(DamagedDataError, match=r"^said already$"), reading(tmp_path):
        raise DamagedDataError("said already")


def test_messages_stay_short_whatever_a_file_says():
    with pytest.raises(ValueError, match="fit into 64 bits") as caught:
        parse_json('{"a": ' + "7" * 4000 + "}")
    assert len(described(caught.value)) < 120
    assert len(described(ValueError("x" * 10_000))) <= 201


# --- locks ---------------------------------------------------------------------------------------


HOLD = """
import sys, time
from pathlib import Path
from piefs.data.files import held

with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds a folder."""
    command = [sys.executable, "-c", HOLD, tmp_path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_writer_learns_which_process_holds_the_folder(holder, tmp_path):
    with pytest.raises(InputError, match=rf"process {holder.pid} on .*writing to {tmp_path}"):
        held(tmp_path).__enter__()


def test_the_lock_of_a_dead_process_blocks_nobody(holder, tmp_path):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / LOCK).exists()
    with held(tmp_path):
        assert (tmp_path / LOCK).read_text().startswith(f"{os.getpid()} on ")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_stays_empty_is_removed_and_one_with_files_stays(tmp_path):
    for name, n_files in (("empty", 0), ("used", 1)):
        with held(tmp_path / name):
            for _ in range(n_files):
                (tmp_path / name / "file").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["used"]
    with pytest.raises(InputError, match="choose another --out"):
        held(tmp_path / "used" / "file").__enter__()


# --- arrays with a document --------------------------------------------------------------------


ARRAYS = {"a.0": np.arange(6, dtype=np.float32).reshape(2, 3).T, "b": np.array([True, False])}


def test_a_folder_gives_back_its_arrays_and_its_document(tmp_path):
    write_folder(tmp_path, ARRAYS, {"kind": "test"}, 3)
    arrays, document = read_folder(tmp_path, (2, 3))
    assert (document["kind"], document["format_version"]) == ("test", 3)
    assert document["versions"]["piefs"]
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


def test_damaged_foreign_and_mixed_up_folders_are_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"no model\.json"):
        read_folder(tmp_path, (3,))
    write_folder(tmp_path, ARRAYS, {}, 3)
    with pytest.raises(ModelFileError, match="model format 3, this version of piefs reads 1 and 2"):
        read_folder(tmp_path, (1, 2))
    (tmp_path / WEIGHTS).write_bytes((tmp_path / WEIGHTS).read_bytes()[:-1])
    with pytest.raises(ModelFileError, match=rf"damaged or belongs to another {DOCUMENT}"):
        read_folder(tmp_path, (3,))
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_folder(tmp_path, (3,))


OTHERS = {name: array + 1 for name, array in ARRAYS.items() if array.dtype.kind == "f"}
DISK = ((os, "fsync"), (Path, "replace"), (Path, "write_bytes"), (Path, "unlink"))
N_CALLS = 16  # of these, more than a save makes


def interrupted_at(step, patch, interrupt):
    """Call `interrupt` in place of that call of all that touch the disk."""
    calls = itertools.count()

    def counted(function):
        def call(*arguments, **keywords):
            if next(calls) == step:
                interrupt()
            return function(*arguments, **keywords)

        return call

    for owner, name in DISK:
        patch.setattr(owner, name, counted(getattr(owner, name)))


def kind_of_model(folder):
    """Which of two models a folder holds, with the weights that belong to it."""
    arrays, document = read_folder(folder, (3,))
    assert arrays.keys() == (ARRAYS if document["kind"] == "old" else OTHERS).keys()
    return document["kind"]


def save_and_die(folder):
    """Save a model in a process that ends at the call of a number, one after the other."""
    for step in range(N_CALLS):
        write_folder(folder / str(step), ARRAYS, {"kind": "old"}, 3)
        if not os.fork():
            interrupted_at(step, pytest.MonkeyPatch(), lambda: os._exit(1))
            write_folder(folder / str(step), OTHERS, {"kind": "new"}, 3)
            os._exit(0)
        os.wait()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX systems fork")
def test_a_model_that_is_saved_over_another_is_never_lost_in_a_crash(tmp_path):
    code = "import pathlib, sys, test_files; test_files.save_and_die(pathlib.Path(sys.argv[1]))"
    places = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], env=os.environ | {"PYTHONPATH": places}
    )
    assert done.returncode == 0
    kinds = [kind_of_model(tmp_path / str(step)) for step in range(N_CALLS)]
    assert kinds == sorted(kinds, reverse=True)  # old ones up to the switch, then new ones
    assert set(kinds) == {"old", "new"}
    for step in range(N_CALLS):
        write_folder(tmp_path / str(step), OTHERS, {"kind": "new"}, 3)
        assert kind_of_model(tmp_path / str(step)) == "new"
        assert not list((tmp_path / str(step)).glob("weights.*.safetensors"))


@pytest.mark.parametrize("step", range(N_CALLS))
def test_a_failing_disk_leaves_the_old_model_or_the_new_one(step, tmp_path, monkeypatch):
    write_folder(tmp_path, ARRAYS, {"kind": "old"}, 3)

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        interrupted_at(step, patch, full)
        try:
            write_folder(tmp_path, OTHERS, {"kind": "new"}, 3)
        except StorageError:
            assert kind_of_model(tmp_path) == "old"
        else:
            assert kind_of_model(tmp_path) == "new"
