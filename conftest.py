"""Fixtures shared by the tests of all modules."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

# Compiling takes most of the time of a small test; processes and test workers share their results.
# Set before JAX is imported, and in the environment, so that commands under test see it too.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / ".pytest_cache" / "xla")
)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has a core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
if version("jaxlib").startswith("0.10."):  # flags of XLA come and go, and an unknown one is fatal
    os.environ.setdefault(
        "XLA_FLAGS",
        # Optimising doubles the time to compile, and pays off after some 700 steps.
        f"--xla_backend_optimization_level={int('slow' in sys.argv)} "
        "--xla_cpu_use_fusion_emitters=false --xla_cpu_multi_thread_eigen=false",
    )

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import make_moons

from piefs.core.networks import MLP

gc.set_threshold(100_000, 20, 50)  # tracing makes many objects, and few of them are garbage
settings.register_profile("piefs", max_examples=20, deadline=None, derandomize=True, database=None)
settings.load_profile("piefs")


MOST_PROGRAMS = 3_000
"""That the fast tests may compile, all workers together: each costs a fraction of a second."""

compiled = {"here": 0, "by workers": 0}


def _count(event: str, **_: object) -> None:
    compiled["here"] += event == "/jax/compilation_cache/cache_misses"


jax.monitoring.register_event_listener(_count)


def pytest_testnodedown(node: Any) -> None:
    """Add up what workers compiled, as each of them ends."""
    compiled["by workers"] += getattr(node, "workeroutput", {}).get("compiled", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of the fast tests that compiles too many programs has failed."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compiled"] = compiled["here"]
    elif session.config.option.markexpr == "not slow" and sum(compiled.values()) > MOST_PROGRAMS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many programs were compiled, and how many may be."""
    said = f"{sum(compiled.values())} programs compiled"
    if terminalreporter.config.option.markexpr == "not slow":
        said += f", of at most {MOST_PROGRAMS}: share fitted models and shapes (tests/toys.py)"
    terminalreporter.write_line(said)


@pytest.fixture(scope="module")
def float64() -> Iterator[None]:
    """Double precision for a whole module: `pytestmark = pytest.mark.usefixtures("float64")`."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """No figures for the runs of a module: they take most of a short run, and test_runs.py's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("piefs.report.pictures.write_pngs", lambda *_: None)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def moons() -> tuple[np.ndarray, np.ndarray]:
    """Rows of two half circles, and their classes."""
    return make_moons(300, noise=0.1, random_state=0)


def _network(rng: np.random.Generator, sizes: tuple[int, ...], activation: str = "relu") -> MLP:
    weights = (rng.normal(size=pair) / pair[0] ** 0.5 for pair in pairwise(sizes))
    biases = (rng.normal(size=size) for size in sizes[1:])
    return MLP(tuple(map(jnp.asarray, weights)), tuple(map(jnp.asarray, biases)), activation)


@pytest.fixture(scope="session")
def network() -> Callable[..., MLP]:
    """Networks with numpy's random numbers: JAX would compile its own for every new shape."""
    return _network


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda p: hasattr(p, "eqns")):
            if hasattr(inner, "eqns"):
                yield from _equations(inner)


@pytest.fixture(scope="session")
def equations() -> Callable[..., list[Any]]:
    """All primitive operations of `function(*args)`, those in loops and inner jits included."""
    return lambda function, *args: list(_equations(jax.make_jaxpr(function)(*args)))
