import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

from piefs import EigenProblem, EigenSolver, PIEFSTransformer
from piefs.operators import Box
from piefs.training import compilation
from piefs.training.compilation import drop_compiled_if_many
from reproduction.baselines import NeuralEF

PROGRAM = """
import sys
from piefs.training.compilation import keep_compiled
if "late" in sys.argv:
    import jax
print(keep_compiled(sys.argv[1] if sys.argv[1] != "-" else None))
import jax, jax.numpy as jnp
def slow_to_compile(x):
    for i in range(150):
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


def test_programs_are_kept_whether_jax_is_imported_before_or_after(tmp_path):
    for order in ("early", "late"):
        folder = tmp_path / order
        assert run(folder, order) == folder
        assert any(folder.iterdir())


def test_a_folder_that_jax_was_told_of_stays(tmp_path):
    assert run("-", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own")) == tmp_path / "own"
    assert any((tmp_path / "own").iterdir())


def test_otherwise_programs_go_to_the_users_cache(tmp_path):
    folder = run("-", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert folder.is_relative_to(tmp_path)
    assert folder.parent.name == "piefs"
    assert any(folder.iterdir())


def test_programs_are_dropped_where_a_process_has_too_many_mappings_and_no_sooner(monkeypatch):
    traced = []
    program = jax.jit(lambda x: traced.append(x) or x)
    now = compilation.mappings()
    assert 0 < now < compilation.mappings_allowed()
    for allowed, n_traced in ((100 * now, 1), (now, 2)):
        program(1.0)
        monkeypatch.setattr(compilation, "mappings_allowed", lambda allowed=allowed: allowed)
        drop_compiled_if_many()
        program(1.0)
        assert len(traced) == n_traced


class LookedError(Exception):
    """Whether there are too many programs was looked at."""


@pytest.mark.parametrize(
    ("module", "fit"),
    [
        ("train", lambda: PIEFSTransformer(1).fit(np.eye(4))),
        ("operators.solver", lambda: EigenSolver(2).solve(EigenProblem(Box([0.0], [1.0])))),
        ("baselines.neuralef", lambda: NeuralEF(1).fit(np.eye(4))),
    ],
)
def test_whatever_is_fitted_looks_first_whether_there_are_too_many_programs(
    module, fit, monkeypatch
):
    looked = mock.Mock(side_effect=LookedError)
    monkeypatch.setattr(f"piefs.{module}.drop_compiled_if_many", looked)
    with pytest.raises(LookedError):
        fit()
