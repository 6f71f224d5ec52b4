"""`n_components="auto"` beside fixed numbers of maps, on validation rows.

    python -m lab.experiments.choosing [DATASET …]

fits on the training rows of each set, and prints accuracy (R² for numbers) and loss on its
validation rows; test rows are not looked at. With "auto" the number of maps is chosen on training
rows that are set aside, so the validation rows here are new to it.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, mean_squared_error

from lab.experiments.data import SETS, Task
from lab.experiments.records import recorded
from lab.experiments.tables import spread, table
from piefs import PIEFSClassifier, PIEFSRegressor
from piefs.training.runtime import keep_compiled

DATASETS = ("digits", "htru2", "two-moons", "breast-cancer", "friedman-1")
NUMBERS: tuple[int | str, ...] = ("auto", 1, 2, 4, 8, 16)
N_SEEDS = 2
KEYWORDS: dict[str, Any] = {"weight_decay": 0.3, "steps_per_component": 600}


def measured(task: Task, n_components: int | str, seed: int) -> dict[str, Any]:
    """Fit, and score on validation rows."""
    estimator = PIEFSRegressor if task.regression else PIEFSClassifier
    keywords = KEYWORDS | {"standardize": task.standardize, "random_state": seed}
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = estimator(n_components, **keywords).fit(task.x, task.y)
    return {
        "score": float(model.score(task.x_validation, task.y_validation)),
        "loss": _loss(model, task),
        "n_maps": int(model.n_components_),
        "seconds": time.monotonic() - begun,
        "n_train": len(task.x),
        "n_validation": len(task.x_validation),
        "settings": model.settings_.document(),
    }


def _loss(model: Any, task: Task) -> float:
    """Log loss, or squared error as a share of the variance."""
    x, y = task.x_validation, task.y_validation
    if task.regression:
        return float(mean_squared_error(y, model.predict(x)) / np.var(y))
    return float(log_loss(y, model.predict_proba(x), labels=model.classes_))


def main(names: list[str]) -> None:
    """Print a table: a line for each data set and number of maps."""
    keep_compiled()
    rows = []
    for name in names or DATASETS:
        task = SETS[name](0)
        for number in NUMBERS:
            rows.append(_row(name, number, task))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    head = ["", "n_components", "maps", "accuracy or R², %", "log loss or 1 − R²", "s"]
    print("\n" + table(head, rows), flush=True)


def _row(name: str, number: int | str, task: Task) -> list[str]:
    found = [
        recorded(
            "choosing", name, f"K-{number}", seed, lambda seed=seed: measured(task, number, seed)
        )
        for seed in range(N_SEEDS)
    ]
    maps = ", ".join(str(record["n_maps"]) for record in found)
    scores = spread(found, "score"), spread(found, "loss", 1, 4), spread(found, "seconds", 1, 0)
    return [name, str(number), maps, *scores]


if __name__ == "__main__":
    main(sys.argv[1:])
