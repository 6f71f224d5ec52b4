"""`python -m lab.tables.sizes [NAME …]`: piefs on more rows, on known sets, and from the shell.

Each measurement is a process of its own, with cold caches, and one record of `sizes.jsonl`.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.machine import BUSY, busy_share
from reproduction.study import Study

RECORDS = Path(__file__).parent / "sizes"
SPLITS = range(10)
COLUMNS = 20


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of 20 columns, three of which decide the class: a curve, a product, some noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, COLUMNS))
    score = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=n)
    return x, (score > 0).astype(int)


def rows(n: int) -> dict[str, Any]:
    """The first fit of a process, of n rows, scored on 20,000 others."""
    from piefs import PIEFSClassifier

    x, y = drawn(n + 20_000)
    start = time.perf_counter()
    model = PIEFSClassifier(random_state=0).fit(x[:n], y[:n])
    return {"seconds": time.perf_counter() - start, "accuracy": model.score(x[n:], y[n:])}


def known(name: str) -> dict[str, Any]:
    """Accuracy on test rows and seconds of a fit over ten ways to cut the rows."""
    from piefs import PIEFSClassifier
    from piefs.data import load

    accuracies, seconds = [], []
    for split in SPLITS:
        data = load(name, split_seed=split)
        start = time.perf_counter()
        model = PIEFSClassifier(random_state=0).fit(data.train.x, data.train.y)
        seconds.append(time.perf_counter() - start)
        accuracies.append(model.score(data.test.x, data.test.y))
    return {
        "seconds": float(np.median(seconds)),
        "accuracy": float(np.mean(accuracies)),
        "spread": float(np.std(accuracies, ddof=1)),
    }


def shell(n: int) -> dict[str, Any]:
    """`piefs fit` on a CSV of n rows, from the shell to the report."""
    x, y = drawn(n)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        names = ",".join([*(f"x{i}" for i in range(COLUMNS)), "y"])
        np.savetxt(table, np.column_stack([x, y]), "%.6g", ",", header=names, comments="")
        piefs = str(Path(sys.executable).with_name("piefs"))
        command = [piefs, "fit", str(table), "--target", "y", "--out", f"{folder}/run", "--quiet"]
        fresh = {"HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache", "MPLCONFIGDIR": folder}
        start = time.perf_counter()
        subprocess.run(command, check=True, env=os.environ | fresh)
        seconds = time.perf_counter() - start
        assert (Path(folder) / "run" / "report.html").is_file()
    return {"seconds": seconds}


MEASURES: dict[str, tuple[Callable[[Any], dict[str, Any]], Any]] = {
    "10,000 rows": (rows, 10_000),
    "100,000 rows": (rows, 100_000),
    "1,000,000 rows": (rows, 1_000_000),
    "two-moons": (known, "two-moons"),
    "circles": (known, "circles"),
    "htru2": (known, "htru2"),
    "piefs fit, 1,000 rows": (shell, 1_000),
}


def measure(name: str) -> None:
    """Make one record."""
    function, argument = MEASURES[name]
    found = function(argument)
    who = resource.RUSAGE_CHILDREN if function is shell else resource.RUSAGE_SELF
    versions = {"python": platform.python_version(), "numpy": version("numpy")}
    record = found | {
        "peak_mb": round(resource.getrusage(who).ru_maxrss / 1024),
        "versions": versions,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
    }
    Study(RECORDS).add(name, record)
    print(name, {key: value for key, value in record.items() if key != "versions"}, flush=True)


def main() -> None:
    """One process a measurement."""
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        measure(sys.argv[2])
        return
    if (share := busy_share()) > BUSY:
        print(f"The machine is not idle ({share:.0%} of its cores' time is taken): seconds suffer.")
    for name in sys.argv[1:] or MEASURES:
        subprocess.run([sys.executable, "-m", "lab.tables.sizes", "--one", name], check=True)


if __name__ == "__main__":
    main()
