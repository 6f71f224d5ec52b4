"""What each metric and rotation buys, at d = 2, 8, 512 and 784, with labels and without.

With labels: the preset `default` with 1,000 steps. Without: the preset `paper` (static weights)
with 8 maps of 300 steps at batch 512, and a logistic regression on the coordinates. Both see the
first 10,000 training rows. All metrics share the settings of `off`: the table says what changing
the metric alone does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from lab.experiments.data import Task
from lab.experiments.methods import Method
from piefs import Metric, PIEFSClassifier, PIEFSTransformer

MOST_ROWS = 10_000
DATASETS = {"two-moons": 2, "circles": 2, "htru2": 8, "cifar10-embedding": 512, "mnist": 784}

METRICS: dict[str, dict[str, Any]] = {
    "off": {},
    "diag, volume": {"metric": "diag"},
    "diag, trace": {"metric": Metric("diag", constraint="trace")},
    "diag, volume, penalised": {"metric": Metric("diag", anisotropy=1.0)},
    "diag, volume, bound 1": {"metric": Metric("diag", bound=1.0)},
    "diag, global, trace": {"metric": Metric("diag", scope="global", constraint="trace")},
    "trotter, volume": {"metric": "trotter"},
    "trotter, trace": {"metric": Metric("trotter", constraint="trace")},
    "cayley, trace": {"metric": Metric("cayley", constraint="trace")},
    "butterfly, global, trace": {"metric": Metric("butterfly", scope="global", constraint="trace")},
    "cayley, composed, trace": {"metric": Metric("cayley", scope="composed", constraint="trace")},
    "agop, trace": {"metric": Metric("agop", constraint="trace")},
    "agop, volume": {"metric": "agop"},
}
SUPERVISED: dict[str, Any] = {"steps_per_component": 1000, "early_stopping": False}
UNSUPERVISED: dict[str, Any] = {
    "preset": "paper",
    "n_components": 8,
    "steps_per_component": 300,
    "batch_size": 512,
}


def with_labels(**keywords: Any) -> Method:
    """Ours on the first rows."""

    def fit(task: Task, seed: int) -> Any:
        model: Any = PIEFSClassifier(
            standardize=task.standardize, random_state=seed, **SUPERVISED | keywords
        )
        model.fit(task.x[:MOST_ROWS], task.y[:MOST_ROWS])
        model.extra_ = _anisotropy(model)
        return model

    return fit


def without_labels(**keywords: Any) -> Method:
    """Coordinates that have seen no label, and a logistic regression on them."""

    def fit(task: Task, seed: int) -> Any:
        features = PIEFSTransformer(
            supervised=False,
            standardize=task.standardize,
            random_state=seed,
            **UNSUPERVISED | keywords,
        )
        probe = LogisticRegression(max_iter=1000)
        model: Any = make_pipeline(features, probe).fit(task.x[:MOST_ROWS], task.y[:MOST_ROWS])
        gram = features.gram_errors(task.x_test)["gram_error_unbiased"]
        model.extra_ = _anisotropy(features) | {"gram_error_test": gram}
        return model

    return fit


def _anisotropy(model: Any) -> dict[str, float]:
    """The widest range of log λ at the end of training."""
    low, high = model.log_scale_ranges_[-1]
    return {"log_scale_range": float(np.float64(high) - low)}


def metric_runs() -> Iterator[tuple[str, str, Method]]:
    """Data set, name and method of every run."""
    for dataset in DATASETS:
        for name, keywords in METRICS.items():
            yield dataset, f"{name}, labels", with_labels(**keywords)
            yield dataset, f"{name}, no labels", without_labels(**keywords)
