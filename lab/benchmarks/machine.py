"""Measuring: what the machine is, how fast it multiplies matrices, times that can be trusted."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

PACKAGES = (
    *("jax", "jaxlib", "numpy", "onnx", "onnxruntime", "optax"),
    *("scikit-learn", "torch", "umap-learn"),
)

BUSY = 0.1
"""The share of the cores' time from which on other work spoils a measurement."""


Work = Callable[[], object]


def seconds(work: Work) -> float:
    """The wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(candidates: Mapping[str, Work], repeats: int = 5) -> dict[str, float]:
    """The median seconds of each candidate, measured in turns so that all see the same machine."""
    for work in candidates.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, work in candidates.items():
            times[name].append(seconds(work))
    return {name: median(values) for name, values in times.items()}


def fresh_python(code: str, *arguments: str, **environment: str) -> str:
    """What a new Python prints, with JAX's variables as given here and no others."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def description() -> dict[str, Any]:
    """Processor, cores, memory, Python and the versions of what is measured."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"piefs": version("piefs-learn")}
        | {name: found for name in PACKAGES if (found := _version(name))},
        "busy_before": round(busy_share(), 2),
    }


def busy_share(seconds: float = 1.0) -> float:
    """The share of all cores' time that is spent on anything while we wait."""

    def ticks() -> tuple[int, int]:
        fields = [int(f) for f in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    (total, idle), _ = ticks(), time.sleep(seconds)
    total_after, idle_after = ticks()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def on_one_core(code: str) -> str:
    """What a fresh Python prints that may use one core only."""
    pinned = f"import os; os.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\n{code}"
    return fresh_python(pinned)


def multiply_rate(shape: tuple[int, int, int]) -> float:
    """GFLOP/s of float32 products (m, k) @ (k, n), the better of XLA's and NumPy's."""
    import jax
    import jax.numpy as jnp

    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = (rng.random(size, dtype=np.float32) for size in ((m, k), (k, n)))
    flops = 2 * m * k * n
    calls = max(1, int(4e9 / flops))

    @jax.jit
    def chain(a: jax.Array, b: jax.Array) -> jax.Array:
        # Each product depends on the one before, so that none is left out.
        return jax.lax.fori_loop(
            0, calls, lambda _, c: a @ (b + 0 * c[0, 0]), jnp.zeros((m, n), jnp.float32)
        )

    a_device, b_device = jnp.asarray(a), jnp.asarray(b)
    times = interleaved(
        {
            "xla": lambda: chain(a_device, b_device).block_until_ready(),
            "numpy": lambda: [a @ b for _ in range(calls)],
        }
    )
    return calls * flops / min(times.values()) / 1e9


def multiply_rates(shapes: dict[str, tuple[int, int, int]]) -> dict[str, dict[str, float]]:
    """GFLOP/s on all cores and on one, for each named shape."""
    all_cores = {name: round(multiply_rate(shape), 1) for name, shape in shapes.items()}
    one_core = {
        name: float(
            on_one_core(f"from lab.benchmarks.machine import *; print(multiply_rate({shape}))")
        )
        for name, shape in shapes.items()
    }
    return {"all_cores": all_cores, "one_core": {n: round(r, 1) for n, r in one_core.items()}}
