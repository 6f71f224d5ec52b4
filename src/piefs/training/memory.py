"""Keeping memory: what a program has freed is there for its next call.

A compiled program asks for room with every call, 35 MB for two steps with `trotter` at 784 columns
and batches of 2048. Pieces over 32 MB the C library of Linux (glibc) returns to the
system each time, which clears every page before it hands them out again: a fifth of such a step.
The command line and the processes that it starts keep their memory; in a script that trains on wide
tables in large batches, call `keep_memory()` before JAX computes anything.
"""

import ctypes
from collections.abc import Callable

# The names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
SETTINGS = {
    M_ARENA_MAX: 1,  # other arenas than the first give back what they can, whatever they are told
    M_MMAP_MAX: 0,
    M_TRIM_THRESHOLD: 2**31 - 1,
}


def keep_memory() -> bool:
    """Keep what is freed in this process, for good; False where the C library is another one.

    Threads that have allocated memory already go on as before: this is for the beginning of a
    program.
    """
    tell = _mallopt()
    return tell is not None and all(tell(name, value) == 1 for name, value in SETTINGS.items())


def is_glibc() -> bool:
    """Whether the C library can be told how to keep memory."""
    return _mallopt() is not None


def _mallopt() -> Callable[[int, int], int] | None:
    try:
        return ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no such function, or no such library
        return None
