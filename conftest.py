"""Fixtures shared by the tests of all modules."""

import gc
import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

# Compiling takes most of the time of a small test; processes and test workers share their results.
# Set before JAX is imported, and in the environment, so that commands under test see it too.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "xla")
)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has a core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
if version("jaxlib").startswith("0.10."):  # flags of XLA come and go, and an unknown one is fatal
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1 "
        "--xla_cpu_multi_thread_eigen=false",
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


LONG_FILES = (
    *("test_docs.py", "test_parallel_cluster.py", "test_wheel.py", "test_cli_processes.py"),
    *("test_cli.py", "test_paper.py", "test_devices.py", "test_cli_reproduce.py", "test_readme.py"),
    *("test_cli_kill.py", "test_watching_docs.py", "test_estimators_choosing.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: a worker that is left with one at the end lets the others wait."""
    items.sort(key=lambda item: item.path.name not in LONG_FILES)


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
