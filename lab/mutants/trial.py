"""One change, tried by the tests of its module in a forked process."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lab.mutants.score import KILLED, SURVIVED, TIMED_OUT

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
SECONDS = 180.0


def import_libraries() -> None:
    """What every trial needs, once, before the first fork; no JAX backend is started by it."""
    sys.path[:0] = [str(SOURCES), str(ROOT / "tests")]
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(ROOT / ".pytest_cache" / "xla")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # as conftest.py
    for name in ("equinox", "hypothesis", "jax", "optax", "pandas", "scipy.stats", "sklearn.svm"):
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.split(".")[0] in ("piefs", "reproduction")]:
        del sys.modules[name]  # each trial imports its own


def tried(module: str, source: str, tests: Sequence[str]) -> tuple[str, float, str]:
    """The verdict of tests on a module with this source, seconds, and the end of their words."""
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        child = os.fork()
        if not child:
            _try(module, source, tests, said.fileno())
        verdict = _awaited(child, start + SECONDS)
        said.seek(0)
        words = said.read().decode(errors="replace")
    return verdict, time.monotonic() - start, words[-2000:]


def _awaited(child: int, deadline: float) -> str:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return SURVIVED if status == 0 else KILLED
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIMED_OUT


def _try(module: str, source: str, tests: Sequence[str], said: int) -> None:
    """Run the tests and end the process; never returns."""
    failed = 1
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(said, stream)
        sys.meta_path.insert(0, _Changed(module, source))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before the fork
        failed = int(pytest.main([*options, "--rootdir", str(ROOT), *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(failed)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module of piefs with another source than the one on disk."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        file = source_of(fullname)
        folders = [str(file.parent)] if file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=self, submodule_search_locations=folders
        )

    def get_source(self, fullname: str) -> str:
        return self.source

    def exec_module(self, module: ModuleType) -> None:
        code = compile(self.source, str(source_of(module.__name__)), "exec")
        exec(code, module.__dict__)


def source_of(module: str) -> Path:
    """Where the source of a module is."""
    path = SOURCES.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
