import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from piefs.app.main import main
from piefs.training import memory
from piefs.training.parallel import open_workers

needs_glibc = pytest.mark.skipif(
    not memory.is_glibc(), reason="memory is kept by telling glibc, which is not here"
)


def pages_a_call(common=None):
    """How many pages a program of 48 MB asks the system for, once it has been called some times."""
    import resource

    import jax
    import jax.numpy as jnp

    @jax.jit
    def program(a, b):
        return jnp.sin(a[:, None] + b) @ b

    a, b = jnp.ones(1000), jnp.ones(12000)

    def pages():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(5):
            program(a, b).block_until_ready()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 5

    # at first there is not yet room for calls that overlap
    return [pages() for _ in range(7)][-1]


def in_a_process(*first):
    """The pages in a process that begins with these lines."""
    lines = [*first, "from test_memory import pages_a_call", "print(pages_a_call())"]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    return int(done.stdout)


@needs_glibc
def test_a_program_that_is_called_again_asks_the_system_for_no_memory():
    assert in_a_process() > 1000
    assert in_a_process("from piefs import keep_memory", "assert keep_memory()") < 100


@needs_glibc
def test_processes_of_jobs_keep_their_memory():
    with open_workers(pages_a_call, n_jobs=1) as workers:
        (ended,) = workers.run([()])
    assert ended.error is None
    assert ended.value < 100


def test_the_command_line_keeps_its_memory(monkeypatch):
    told = mock.Mock()
    monkeypatch.setattr(sys.modules["piefs.app.main"], "keep_memory", told)
    monkeypatch.setattr("sys.argv", ["piefs", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert told.called


@pytest.mark.parametrize("library", [mock.Mock(spec=[]), OSError, TypeError])
def test_another_c_library_is_left_alone(library, monkeypatch):
    monkeypatch.setattr(
        "ctypes.CDLL", mock.Mock(side_effect=library if isinstance(library, type) else [library])
    )
    assert memory.keep_memory() is False
