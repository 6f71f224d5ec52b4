"""One writer at a time; folders of arrays with a document."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from piefs.data.folders import DOCUMENT, LOCK, WEIGHTS, held, read_folder, write_folder
from piefs.errors import InputError, ModelFileError

HOLD = """
import sys, time
from pathlib import Path
from piefs.data.folders import held

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
