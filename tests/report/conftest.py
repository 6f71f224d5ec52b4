"""One run whose page and pictures all tests read, and figures that are closed after each test."""

import csv
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from commands import piefs

matplotlib.use("Agg")


class Run(NamedTuple):
    """A run's folder, what the command printed, and names in its data that look like markup."""

    folder: Path
    said: str
    hostile: str = "<script>document.title='owned'</script>"
    column: str = "</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def messy(tmp_path_factory):
    """A run on a table with gaps, an identifier, a constant, and names that look like markup."""
    folder = tmp_path_factory.mktemp("messy")
    run = Run(folder / "run", "")
    rng = np.random.default_rng(0)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "age", run.column, "same", "kind"])
        for i in range(300):
            age = rng.normal(40, 10)
            kind = run.hostile if age > 45 else "young" if age < 35 else "R&D $5"
            color = rng.choice(["<b>red</b>", "blue"])
            writer.writerow([f"C{i:04d}", "" if i % 30 == 0 else f"{age:.2f}", color, 7, kind])
    (folder / "small.toml").write_text("hidden = [16, 16]\n[optimizer]\nlog_every = 20\n")
    done = piefs(
        *("fit", "rows.csv", "--target", "kind", "--id", "customer", "--missing", "impute"),
        *("-k", "3", "--preset", "fast", "--steps", "40", "--batch-size", "64"),
        *("--config", "small.toml", "--out", "run"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return run._replace(said=done.stdout)
