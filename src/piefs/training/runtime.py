"""The process that trains: compiled programs and freed memory are kept, and dropped in time.

A program is compiled once for each shape of data and settings, which takes a second or two; kept
on disk, it is loaded in a fraction of that. The command line keeps its programs in the user's
cache; in a script or a notebook, call `keep_compiled()` before the first fit.

On a CPU each program takes some mappings of memory. Linux allows a process 65,530 of them by
default, and one that asks for more dies: fits to some 150 tables of different widths would do
(`lab/experiments/mappings.py`). So if half of them are taken, programs are dropped before the next
fit.

A program also asks for room with every call, 35 MB for two steps with `trotter` at 784 columns and
batches of 2048. The C library of Linux (glibc) returns pieces over 32 MB to the system each time,
which clears every page before it hands them out again: a fifth of such a step. The command line
and the processes it starts keep their memory; in a script that trains on wide tables in large
batches, call `keep_memory()` before JAX computes anything.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

from piefs.errors import InputError

FOLDER_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
OPTIONS = {
    # JAX by default keeps only what took more than a second to compile.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}

MOST_TAKEN = 0.5
"""The share of a process's mappings that may be taken when a fit begins."""

# The names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
MALLOC_OPTIONS = {
    M_ARENA_MAX: 1,  # further arenas give back what they can, whatever the options say
    M_MMAP_MAX: 0,
    M_TRIM_THRESHOLD: 2**31 - 1,
}


def keep_compiled(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in `folder`, by default the user's cache, and return that folder.

    A folder that `$JAX_COMPILATION_CACHE_DIR` names stays in force unless another one is given.
    Programs are tied to the version of JAX and the kind of machine; the folder can be deleted at
    any time.
    """
    if folder is None:
        folder = os.environ.get(FOLDER_VARIABLE) or _user_folder()
    settings = {"jax_compilation_cache_dir": str(folder), **OPTIONS}
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)  # for a JAX that is yet to be imported
        if "jax" in sys.modules:
            sys.modules["jax"].config.update(name, value)
    return Path(folder)


def _user_folder() -> Path:
    try:
        import platformdirs
    except ImportError as error:
        raise InputError(
            "keep_compiled() needs a folder; the user's cache is known with "
            "pip install 'piefs-learn[app]'"
        ) from error
    return Path(platformdirs.user_cache_dir("piefs", appauthor=False)) / "compiled"


def drop_compiled_if_many() -> None:
    """Drop the programs of this process if they leave too few mappings of memory for more."""
    if mappings() > MOST_TAKEN * mappings_allowed():
        import jax

        jax.clear_caches()


def mappings() -> int:
    """How many mappings of memory this process has; 0 if that cannot be known."""
    try:
        with Path("/proc/self/maps").open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def mappings_allowed() -> float:
    """How many a process may have."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return float("inf")


def keep_memory() -> bool:
    """Keep what is freed in this process, for good; False if the C library is not glibc.

    Threads that have allocated memory already go on as before: call this first in a program.
    """
    mallopt = _mallopt()
    return mallopt is not None and all(mallopt(*option) == 1 for option in MALLOC_OPTIONS.items())


def is_glibc() -> bool:
    """Whether the C library has options for keeping memory."""
    return _mallopt() is not None


def _mallopt() -> Callable[[int, int], int] | None:
    try:
        return ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no such function, or no such library
        return None
