"""Where the thresholds of the training warnings lie: healthy runs and spoiled ones.

    python -m lab.experiments.signs [DATASET …]

fits each, and prints the statistic behind each sign of `piefs.training.diagnosis` under its
threshold, with what was warned of. It never sees test rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

from lab.experiments.data import SETS, Task
from lab.experiments.records import recorded
from lab.experiments.tables import table
from piefs import PIEFSClassifier, PIEFSRegressor
from piefs.data.rows import ScaledRows
from piefs.errors import DivergedError
from piefs.training import diagnosis
from piefs.training.batches import Samples
from piefs.training.diagnosis import (
    RunRecord,
    late_fall,
    loss_by_chance,
    shares_of_chance,
    variation,
)
from piefs.training.evaluation import coordinates_of
from piefs.training.runtime import keep_compiled

DATASETS = ("two-moons", "circles", "breast-cancer", "diabetes", "htru2", "digits")
MOST_ROWS = 3000
BASE: dict[str, Any] = {"n_components": 6, "random_state": 0, "optimizer": {"log_every": 5}}
ALL_STEPS = {"early_stopping": False, "weight_decay": 0.3}

HEALTHY: dict[str, dict[str, Any]] = {
    "defaults, at most 600 steps": {"steps_per_component": 600},
    "300 steps": {"steps_per_component": 300} | ALL_STEPS,
    "600 steps": {"steps_per_component": 600} | ALL_STEPS,
    "paper, 3 maps": {"preset": "paper", "n_components": 3, "steps_per_component": 300},
    "paper, 3 maps, trotter": {
        **{"preset": "paper", "n_components": 3, "steps_per_component": 300},
        "metric": "trotter",
    },
}
SPOILED: dict[str, dict[str, Any]] = {
    "60 steps": {"steps_per_component": 60} | ALL_STEPS,
    "150 steps": {"steps_per_component": 150} | ALL_STEPS,
    "nothing keeps maps orthonormal": {
        **{
            "steps_per_component": 300,
            "weighting": {"orth": 0.0},
            "preset": "default, not whitened",
        },
        **{"smoothness": 1.0} | ALL_STEPS,
    },
    "smoothness outweighs all": {"steps_per_component": 300, "smoothness": 1e4} | ALL_STEPS,
    "labels of no meaning": {
        **{"steps_per_component": 600, "early_stopping": False},
        **{"weight_decay": 0.0, "smoothness": 0.0},
    },
    "a metric at a rate far too high": {
        **{"preset": "paper", "n_components": 3, "steps_per_component": 300, "metric": "diag"},
        "learning_rate": 0.05,
    },
}

COLUMNS: dict[str, tuple[str, str]] = {
    "variation": ("varies", f"≤ {diagnosis.SAME_EVERYWHERE:g}"),
    "log_scale": ("log λ", f"> {diagnosis.LARGEST_LOG_SCALE:g}"),
    "gram": ("Gram/K", f"> {diagnosis.GRAM_SHARE:g}"),
    "raw_gram": ("raw Gram/K", f"> {diagnosis.RAW_GRAM_SHARE:g}"),
    "fall": ("fall", f"> {diagnosis.STILL_FALLING:g}"),
    "gap": ("gap", f"> {diagnosis.OVERFITTED:g}"),
    "by_heart": ("training loss", f"≤ {diagnosis.LEARNED_BY_HEART:g}"),
    "rise": ("and rise", f"> {diagnosis.SPOILED:g}"),
}
"""Statistics, their headings, and beyond what they are a sign."""


def evidence_of(model: Any, samples: Samples) -> RunRecord:
    """What a fitted estimator is judged by, from what it keeps."""
    return RunRecord(
        model.settings_,
        model.history_,
        model.gram_error_,
        coordinates_of(model.model_.maps, samples.x),
        model.log_scale_ranges_,
        loss_by_chance(samples),
        used_all_steps=model.n_iter_ >= model.settings_.total_steps,
    )


def statistics(evidence: RunRecord) -> dict[str, float]:
    """The number behind each sign; losses are shares of the loss by chance."""
    n_maps, last = evidence.raw.shape[1], evidence.history[-1]
    losses = shares_of_chance(evidence)
    trained = last["loss_class"] / (evidence.chance or 1.0)
    return {
        # the least varying map may be a constant where maps are trained in turn
        "variation": float(np.sort(variation(evidence.raw))[diagnosis.n_constants(evidence)]),
        "log_scale": float(np.max(np.abs(evidence.log_scale_ranges), initial=0.0)),
        "gram": evidence.gram_error / n_maps,
        "raw_gram": last["gram_error"] / n_maps,
        "fall": late_fall(losses),
        "gap": losses[-1] - trained,
        "by_heart": trained,
        "rise": losses[-1] - min(losses),
    }


def measured(task: Task, keywords: dict[str, Any], *, shuffled: bool) -> dict[str, Any]:
    """Fit on some of the rows, and give the statistics with what was warned of."""
    x, y = task.x[:MOST_ROWS], task.y[:MOST_ROWS]
    y = np.random.default_rng(0).permutation(y) if shuffled else y
    estimator = PIEFSRegressor if task.regression else PIEFSClassifier
    model = estimator(**BASE | keywords, standardize=task.standardize)
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(x, y, validation_data=(task.x_validation, task.y_validation))
        except DivergedError as error:
            return {"diverged": str(error)}
    target = ((y - y.mean()) / y.std())[:, None] if task.regression else y
    scaled = ScaledRows(x, model.model_.scaling, np.float32)[:]
    samples = Samples(scaled, target)
    return {
        **statistics(evidence_of(model, samples)),
        "warned": [finding.kind for finding in model.warnings_],
        "seconds": time.monotonic() - begun,
        "n_train": len(x),
        "settings": model.settings_.document(),
    }


def main(names: list[str]) -> None:
    """Print a table of the healthy runs, and one of the spoiled, as far as they get."""
    keep_compiled()
    for title, runs in (("Healthy", HEALTHY), ("Spoiled", SPOILED)):
        rows = []
        for name in names or DATASETS:
            task = SETS[name](0)
            for run, keywords in runs.items():
                rows.append(_row(name, run, task, keywords))
                print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
        head = [title, "run", *(f"{name} ({limit})" for name, limit in COLUMNS.values()), "warned"]
        print("\n" + table(head, rows), flush=True)


def _row(name: str, run: str, task: Task, keywords: dict[str, Any]) -> list[str]:
    def measure() -> dict[str, Any]:
        return measured(task, keywords, shuffled=run == "labels of no meaning")

    record = recorded("signs", name, run, 0, measure)
    if "diverged" in record:
        return [name, run, *("–" for _ in COLUMNS), "ended by an error"]
    values = [f"{record[column]:.2g}" for column in COLUMNS]
    if record["settings"]["solver"] == "sequential":
        values[list(COLUMNS).index("fall")] = "–"  # each new map lowers the loss: not judged
    return [name, run, *values, ", ".join(record["warned"]) or "–"]


if __name__ == "__main__":
    main(sys.argv[1:])
