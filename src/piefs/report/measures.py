"""What a page measures of a fitted model beyond its scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from piefs.data import Dataset
from piefs.data.encoder import TableEncoder
from piefs.report.relevance import column_relevance, inverse_metric, slopes_by_map

PROBE_ROWS, RELEVANCE_ROWS, DEPENDENCE_ROWS = 5_000, 2_000, 300
N_LEADING, N_INPUTS, N_VALUES = 4, 6, 25
KEPT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MAX_METRIC_FEATURES = 256
MAX_CELLS = 50_000_000  # of which duplicates are looked for


def by_maps_kept(phi: dict[str, np.ndarray], data: Dataset) -> dict[str, Any]:
    """The score of a linear probe on the first 1, 2, … maps: accuracy, or R²."""
    k = phi["train"].shape[1]
    kept = sorted({n for n in KEPT if n < k} | {k})
    rows = np.random.default_rng(0).permutation(len(data.train))[:PROBE_ROWS]
    x, y = phi["train"][rows], data.train.y[rows]
    scores: dict[str, list[float]] = {"validation": [], "test": []}
    for n in kept:
        probe: Any = LinearRegression() if data.is_regression else LogisticRegression(max_iter=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            probe.fit(x[:, :n], y)
        for name, values in scores.items():
            values.append(float(probe.score(phi[name][:, :n], data.splits[name].y)))
    label = "R²" if data.is_regression else "accuracy"
    return {"kept": kept, "scores": scores, "label": label}


def relevance_of(estimator: Any, data: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
    """Shares of each map's mean squared slope, (d, K), and of the metric, (d,), if it has one."""
    x = data.train.x[:RELEVANCE_ROWS].astype(estimator.model_.dtype)
    slopes = slopes_by_map(estimator.model_, x)
    shares = slopes / np.maximum(slopes.sum(axis=0), np.finfo(float).tiny)
    if estimator.settings_["metric"] == "off" or x.shape[1] > MAX_METRIC_FEATURES:
        return shares, None
    return shares, column_relevance(inverse_metric(estimator.model_, x))


def dependence(estimator: Any, data: Dataset, shares: np.ndarray) -> list[dict[str, Any]]:
    """How the leading maps move with each of the inputs that matter most, averaged over rows.

    An input takes a value in every row while the others stay as they were observed.
    """
    rows = data.train.x[:DEPENDENCE_ROWS]
    leading = min(N_LEADING, shares.shape[1])
    order = np.argsort(-shares[:, :leading].sum(axis=1), kind="stable")[:N_INPUTS]
    found = []
    for feature in sorted(order.tolist()):
        values = _grid(data.train.x[:, feature])
        moved = np.repeat(rows[None], len(values), axis=0)
        moved[:, :, feature] = values[:, None]
        phi = estimator.transform(moved.reshape(-1, rows.shape[1]))[:, :leading]
        curves = phi.reshape(len(values), len(rows), leading).mean(axis=1)
        name = data.feature_names[feature]
        found.append({"name": name, "values": values.tolist(), "curves": curves.tolist()})
    return found


def _grid(column: np.ndarray) -> np.ndarray:
    """The values of a column if they are few, else quantiles from the first to the 99th."""
    distinct = np.unique(column)
    if len(distinct) <= N_VALUES:
        return distinct.astype(float)
    return np.unique(np.quantile(column, np.linspace(0.01, 0.99, N_VALUES)).astype(float))


def data_facts(data: Dataset, encoder: TableEncoder) -> dict[str, Any]:
    """What of the data itself may spoil a model."""
    dropped = [c.name for c in encoder.columns if c.kind == "dropped" and c.reason == "constant"]
    facts: dict[str, Any] = {"constant_columns": dropped, **_duplicates(data)}
    if len(data.class_names) > 1:
        n = len(data.class_names)
        counts = {k: np.bincount(part.y, minlength=n) for k, part in data.splits.items()}
        facts["class_counts"] = {name: count.tolist() for name, count in counts.items()}
    return facts


def _duplicates(data: Dataset) -> dict[str, int | None]:
    """Training rows that are there more than once, and held-out rows that are training rows."""
    if sum(part.x.size for part in data.splits.values()) > MAX_CELLS:
        return {"repeated": None, "leaked": None}
    train, validation, test = ([row.tobytes() for row in p.x] for p in data.splits.values())
    known = set(train)
    leaked = sum(row in known for row in validation + test)
    return {"repeated": len(train) - len(known), "leaked": leaked}
