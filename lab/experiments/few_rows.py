"""Few rows: what choosing the steps and the weight decay brings there, and what it costs.

    python -m lab.experiments.few_rows [DATASET …]

fits on the first rows of a set's training rows, shuffled, and scores on those left over; test rows
are not looked at. *fixed* takes all steps at the least weight decay, *chosen* chooses both on rows
set aside, again and again, as the default does where there are rows enough.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from lab.experiments.data import SETS, Task
from lab.experiments.records import recorded
from lab.experiments.tables import spread, table
from piefs import PIEFSClassifier, PIEFSRegressor
from piefs.training.runtime import keep_compiled

DATASETS = ("breast-cancer", "gaussian-quantiles", "friedman-1")
NUMBERS = (40, 80)
METHODS = ("fixed", "chosen", "forest")
N_SEEDS = 3


def measured(task: Task, n_rows: int, method: str, seed: int) -> dict[str, Any]:
    """Fit on `n_rows`, and score on the others."""
    order = np.random.default_rng(seed).permutation(len(task.x))
    fitted, left = order[:n_rows], order[n_rows:][:2000]
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _estimator(task, method, seed).fit(task.x[fitted], task.y[fitted])
    return {
        "score": float(model.score(task.x[left], task.y[left])),
        "seconds": time.monotonic() - begun,
        "n_train": n_rows,
        "n_scored": len(left),
        "settings": model.settings_.document() if hasattr(model, "settings_") else {},
    }


def _estimator(task: Task, method: str, seed: int) -> Any:
    if method == "forest":
        forest = RandomForestRegressor if task.regression else RandomForestClassifier
        return forest(200, random_state=seed)
    ours = PIEFSRegressor if task.regression else PIEFSClassifier
    return ours(early_stopping=method == "chosen", random_state=seed)


def main(names: list[str]) -> None:
    """Print a table: a line for each data set and number of rows."""
    keep_compiled()
    rows = []
    for name in names or DATASETS:
        task = SETS[name](0)
        for n_rows in NUMBERS:
            rows.append([name, str(n_rows), *(_cell(name, n_rows, m, task) for m in METHODS)])
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    print("\n" + table(["", "rows", *METHODS], rows), flush=True)


def _cell(name: str, n_rows: int, method: str, task: Task) -> str:
    found = [
        recorded(
            "few-rows",
            name,
            f"{method}-{n_rows}",
            seed,
            lambda seed=seed: measured(task, n_rows, method, seed),
        )
        for seed in range(N_SEEDS)
    ]
    return f"{spread(found, 'score')} ({spread(found, 'seconds', 1, 0)} s)"


if __name__ == "__main__":
    main(sys.argv[1:])
