import subprocess
import sys
from unittest import mock

import pytest

from piefs import memory

PROGRAM = """
import resource, sys
from piefs.memory import keep_memory
if "keep" in sys.argv:
    assert keep_memory()
import jax, jax.numpy as jnp

@jax.jit
def needs_48_megabytes(a, b):
    return jnp.sin(a[:, None] + b) @ b

a, b = jnp.ones(1000), jnp.ones(12000)
def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        needs_48_megabytes(a, b).block_until_ready()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 5
for _ in range(6):  # until there is room for the calls that overlap
    pages()
print(pages())
"""


def pages_a_call(*args):
    command = [sys.executable, "-c", PROGRAM, *args]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not memory.is_glibc(), reason="memory is kept by telling glibc, not here")
def test_a_program_that_is_called_again_asks_the_system_for_no_memory():
    assert pages_a_call() > 1000
    assert pages_a_call("keep") < 100


@pytest.mark.parametrize("library", [mock.Mock(spec=[]), OSError, TypeError])
def test_another_c_library_is_left_alone(library, monkeypatch):
    monkeypatch.setattr(
        "ctypes.CDLL", mock.Mock(side_effect=library if isinstance(library, type) else [library])
    )
    assert memory.keep_memory() is False
