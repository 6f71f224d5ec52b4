"""Memory that a process frees, kept for its next use.

glibc returns pieces over 32 MB to the system, and clearing their pages takes a fifth of a step of
the paper's `diag` and `trotter` on MNIST.
"""

import ctypes

# The names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
MALLOC_OPTIONS = {
    M_ARENA_MAX: 1,  # further arenas give back what they can, whatever the options say
    M_MMAP_MAX: 0,
    M_TRIM_THRESHOLD: 2**31 - 1,
}


def keep_memory() -> bool:
    """Keep what is freed in this process, for good; False if the C library is not glibc.

    Threads that have allocated memory already go on as before: call this first in a program.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no such function, or no such library
        return False
    return all(mallopt(*option) == 1 for option in MALLOC_OPTIONS.items())
