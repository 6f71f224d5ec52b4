"""Memory that is freed is kept, which is measured in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from platform import libc_ver
from unittest import mock

import pytest

from reproduction.memory import keep_memory

ROOT = Path(__file__).parents[2]
needs_glibc = pytest.mark.skipif(libc_ver()[0] != "glibc", reason="only glibc can keep memory")


def in_a_process(*first):
    """The pages in a process that begins with these lines."""
    lines = [*first, "from chores import pages_a_call", "print(pages_a_call())"]
    command = [sys.executable, "-c", "\n".join(lines)]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout)


@pytest.mark.slow
@needs_glibc
def test_a_program_that_is_called_again_asks_the_system_for_no_memory():
    assert in_a_process() > 1000
    assert in_a_process("from reproduction.memory import keep_memory", "assert keep_memory()") < 100


@pytest.mark.parametrize("library", [mock.Mock(spec=[]), OSError, TypeError])
def test_another_c_library_is_left_alone(library, monkeypatch):
    monkeypatch.setattr(
        "ctypes.CDLL", mock.Mock(side_effect=library if isinstance(library, type) else [library])
    )
    assert keep_memory() is False
