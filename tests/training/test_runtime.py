"""Programs and memory are kept between calls, and programs dropped before they are too many."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

from piefs import EigenProblem, EigenSolver, PIEFSTransformer
from piefs.errors import InputError
from piefs.operators import Box
from piefs.training import runtime

PROGRAM = """
import sys
from piefs.training.runtime import keep_compiled
if "late" in sys.argv:
    import jax
print(keep_compiled(sys.argv[1] if sys.argv[1] != "-" else None))
import jax, jax.numpy as jnp
def slow_to_compile(x):
    for i in range(30):
        x = jnp.sin(x @ x.T + i) @ jnp.cos(x)
    return x
jax.jit(slow_to_compile)(jnp.ones((8, 8)))
"""


def run(*args, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, args)],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip())


@pytest.mark.slow
def test_programs_are_kept_whether_jax_is_imported_before_or_after(tmp_path):
    for order in ("early", "late"):
        folder = tmp_path / order
        assert run(folder, order) == folder
        assert any(folder.iterdir())


def test_a_folder_that_the_environment_names_stays(tmp_path):
    assert run("-", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own")) == tmp_path / "own"
    assert any((tmp_path / "own").iterdir())


@pytest.mark.slow
def test_otherwise_programs_go_to_the_users_cache(tmp_path):
    folder = run("-", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert folder.is_relative_to(tmp_path)
    assert folder.parent.name == "piefs"
    assert any(folder.iterdir())


def test_programs_are_dropped_if_a_process_has_too_many_mappings_and_no_sooner(monkeypatch):
    traced = []
    program = jax.jit(lambda x: traced.append(x) or x)
    now = runtime.mappings()
    assert 0 < now < runtime.mappings_allowed()
    for allowed, n_traced in ((100 * now, 1), (now, 2)):
        program(1.0)
        monkeypatch.setattr(runtime, "mappings_allowed", lambda allowed=allowed: allowed)
        runtime.drop_compiled_if_many()
        program(1.0)
        assert len(traced) == n_traced


def test_without_the_users_cache_a_folder_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    with pytest.raises(InputError, match="without a folder needs the package platformdirs"):
        runtime.keep_compiled()


class CheckedError(Exception):
    """The number of programs was checked."""


@pytest.mark.parametrize(
    ("module", "fit"),
    [
        ("piefs.training.loop", lambda: PIEFSTransformer(1, solver="joint").fit(np.eye(4))),
        ("piefs.operators.solver", lambda: EigenSolver(2).solve(EigenProblem(Box([0.0], [1.0])))),
    ],
)
def test_every_fit_first_checks_whether_there_are_too_many_programs(module, fit, monkeypatch):
    check = mock.Mock(side_effect=CheckedError)
    monkeypatch.setattr(f"{module}.drop_compiled_if_many", check)
    with pytest.raises(CheckedError):
        fit()
