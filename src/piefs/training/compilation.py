"""Keeping compiled programs: between processes on disk, and within one as long as there is room.

A program is compiled once for each shape of data and settings, which takes a second or two; kept
on disk, it is loaded in a fraction of that. The command line keeps its programs in the user's
cache; in a script or a notebook, call `keep_compiled()` before the first fit.

On a CPU each program takes some mappings of memory. Linux allows a process 65,530 of them unless
told otherwise, and one that asks for more dies of it: fits to some 150 tables of different widths
would do (`lab/experiments/mappings.py`). So where half of them are taken, programs are dropped
before the next fit.
"""

import os
import sys
from pathlib import Path

FOLDER_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
OPTIONS = {
    # JAX by default keeps only what took more than a second to compile.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}

MOST_TAKEN = 0.5
"""The share of a process's mappings that may be taken when a fit begins."""


def keep_compiled(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in `folder`, by default the user's cache, and return that folder.

    A folder that JAX has already been told of (by `$JAX_COMPILATION_CACHE_DIR`) is left in place
    unless another one is named. Programs are tied to the version of JAX and the kind of machine;
    the folder can be deleted at any time.
    """
    if folder is None:
        folder = os.environ.get(FOLDER_VARIABLE) or _user_folder()
    settings = {"jax_compilation_cache_dir": str(folder), **OPTIONS}
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)  # for a JAX that is yet to be imported
        if "jax" in sys.modules:
            sys.modules["jax"].config.update(name, value)
    return Path(folder)


def drop_compiled_if_many() -> None:
    """Drop the programs of this process where they leave too few mappings of memory for more."""
    if mappings() > MOST_TAKEN * mappings_allowed():
        import jax

        jax.clear_caches()


def mappings() -> int:
    """How many mappings of memory this process has; 0 where that cannot be known."""
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


def _user_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("piefs", appauthor=False)) / "compiled"
