"""Simple baselines on the same splits, bounded in time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from piefs.data import Dataset
from piefs.report.scores import scores_by_split

CELLS = 4_000_000  # rows × columns, at most, that a baseline is fitted on: some seconds
MAX_ITERATIONS = 100
MANY_CLASSES = 30  # from here on a forest takes too long for a glance


def compare(data: Dataset, task: str, n_components: int) -> list[dict[str, Any]]:
    """Every baseline's scores by metric and split, and what to know of how it was fitted."""
    if len(data.class_names) == 1:
        return []
    n_rows = max(50, CELLS // data.train.x.shape[1])
    rows = _spread(len(data.train), n_rows)
    note = "" if len(rows) == len(data.train) else f"fitted on {len(rows):,} rows"
    return [
        _compared(name, make, data, rows, note)
        for name, make in _baselines(data, task, n_components).items()
    ]


def _baselines(data: Dataset, task: str, k: int) -> dict[str, Callable[[], Any]]:
    if data.is_regression:
        return {
            "mean": DummyRegressor,
            "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
            "gradient boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        }
    found = {
        "majority class": lambda: DummyClassifier(strategy="prior"),
        "logistic regression": lambda: make_pipeline(StandardScaler(), _linear()),
    }
    if task == "unsupervised":
        k = min(k, *data.train.x.shape)
        return found | {
            f"logistic regression on {k} principal components": lambda: make_pipeline(
                StandardScaler(), PCA(k, random_state=0), _linear()
            )
        }
    if len(data.class_names) <= MANY_CLASSES:
        found["random forest"] = lambda: RandomForestClassifier(
            100, min_samples_leaf=1, n_jobs=1, random_state=0
        )
    return found


def _linear() -> LogisticRegression:
    return LogisticRegression(max_iter=MAX_ITERATIONS)


def _compared(
    name: str, make: Callable[[], Any], data: Dataset, rows: np.ndarray, note: str
) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # said of our own scores
            model = make().fit(data.train.x[rows], data.train.y[rows])
            scores = scores_by_split(model, data)
    except ValueError as error:  # scikit-learn's way to refuse rows: the page says so, and goes on
        scores, note = {}, f"not fitted: {' '.join(str(error).split())[:120]}"
    return {"name": name, "scores": scores, "note": note, "seconds": time.perf_counter() - start}


def _spread(n: int, most: int) -> np.ndarray:
    """At most so many of n rows, at random but always the same."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
