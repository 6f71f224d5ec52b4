"""Methods compared over tables: means over splits, ranks, gaps, and the critical difference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

Records = Iterable[Mapping[str, Any]]
Scores = dict[str, dict[str, float]]
"""A number for each table and method."""

POINT = 0.01
MOST_GAP = 100.0
"""Points: an R² far below zero says no more than that."""


def by_table(records: Records, measure: str, methods: Sequence[str]) -> Scores:
    """Means over the splits that every one of the methods has; tables without one are left out."""
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record["method"] in methods and record.get(measure) is not None:
            found[record["table"]][record["split"]][record["method"]] = record[measure]
    means = {}
    for table, splits in found.items():
        shared = [scores for scores in splits.values() if len(scores) == len(methods)]
        if shared:
            means[table] = {m: float(np.mean([s[m] for s in shared])) for m in methods}
    return means


def scored(records: Records, methods: Sequence[str]) -> Scores:
    """Accuracy or R²: the score that decides."""
    records = list(records)
    return by_table(records, "accuracy", methods) | by_table(records, "r2", methods)


def matrix(scores: Scores, methods: Sequence[str]) -> np.ndarray:
    """(tables, methods)"""
    return np.array([[row[m] for m in methods] for row in scores.values()])


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks within each row, 1 for the largest; equal values share the mean of theirs."""
    return rankdata(-values, axis=1)


def gaps(values: np.ndarray) -> np.ndarray:
    """Points behind the best of each row, at most `MOST_GAP`."""
    return np.minimum(100 * (values.max(axis=1, keepdims=True) - values), MOST_GAP)


def shares_near_best(values: np.ndarray) -> np.ndarray:
    """The share of rows on which a method is within a point of the best."""
    return (values >= values.max(axis=1, keepdims=True) - POINT).mean(axis=0)


def friedman(values: np.ndarray) -> float:
    """The p-value of equal mean ranks (Friedman 1937)."""
    return float(friedmanchisquare(*values.T).pvalue)


def critical_difference(n_methods: int, n_tables: int, level: float = 0.05) -> float:
    """Mean ranks that differ by less may be equal: q √(k (k + 1) / 6N), Nemenyi's test."""
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def cliques(mean_ranks: Sequence[float], difference: float) -> list[tuple[float, float]]:
    """The longest runs of ranks that span less than the critical difference, as first and last."""
    ordered, found = sorted(mean_ranks), []
    for i, low in enumerate(ordered):
        high = max(rank for rank in ordered[i:] if rank - low < difference)
        if high > low and (not found or high > found[-1][1]):
            found.append((low, high))
    return found
