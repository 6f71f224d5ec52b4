"""One writer at a time."""

import os
import signal
import subprocess
import sys

import pytest

from piefs.data.locks import locked
from piefs.errors import InputError

HOLD = """
import sys, time
from pathlib import Path
from piefs.data.locks import locked

with locked(Path(sys.argv[1]), Path("the run")):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds a lock."""
    path = tmp_path / ".lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield path, process
    process.kill()
    process.communicate()


def test_a_second_writer_is_told_which_process_is_the_first(holder, tmp_path):
    path, process = holder
    with pytest.raises(InputError, match=rf"process {process.pid} on .*writing to {tmp_path}"):
        locked(path, tmp_path).__enter__()


def test_the_lock_of_a_dead_process_holds_nobody_back(holder, tmp_path):
    path, process = holder
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert path.exists()
    with locked(path, tmp_path):
        assert path.read_text().startswith(f"{os.getpid()} on ")
    assert not path.exists()


def test_a_lock_file_that_goes_as_it_is_locked_is_made_again(tmp_path, monkeypatch):
    from piefs.data import locks

    path, real, calls = tmp_path / ".lock", locks._lock, []

    def lock(file, what):
        real(file, what)
        calls.append(file)
        if len(calls) == 1:
            path.unlink()  # as its last holder does, between our opening and our locking

    monkeypatch.setattr(locks, "_lock", lock)
    with locked(path, tmp_path):
        assert len(calls) == 2
        assert path.exists()
