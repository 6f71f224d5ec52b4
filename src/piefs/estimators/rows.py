"""From checked arrays to the rows that training sees: scaled, weighted, some set aside."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight

from piefs.batches import Samples


def scaling_of(X: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; a constant column keeps scale 1."""
    X = X.astype(np.float64)
    center = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight))
    tiny = 10 * np.finfo(np.float64).eps * np.abs(center)
    return center, np.where(deviation > tiny, deviation, 1.0)


def samples_of(
    x: np.ndarray,
    targets: np.ndarray | None,
    weight: np.ndarray | None,
    class_weight: Any,
    unlabeled: np.ndarray | None,
) -> Samples:
    """Scaled rows with their weights; unlabelled ones follow, with a label weight of zero."""
    label_weight = weight
    if targets is not None and class_weight is not None:
        by_class = compute_sample_weight(class_weight, targets)
        label_weight = by_class if weight is None else by_class * weight
    targets = as_precise_as(x, targets)
    if unlabeled is None:
        return Samples(x, targets, weight, label_weight)

    def followed_by(value: float, given: np.ndarray | None) -> np.ndarray:
        given = np.ones(len(x)) if given is None else given
        fill = np.full((len(unlabeled), *given.shape[1:]), value, given.dtype)
        return np.concatenate([given, fill])

    return Samples(
        np.concatenate([x, unlabeled]),
        None if targets is None else followed_by(0, targets),
        followed_by(1, weight),
        followed_by(0, label_weight),
    )


def as_precise_as(x: np.ndarray, targets: np.ndarray | None) -> np.ndarray | None:
    """Targets that are numbers in the precision of the inputs; class indices as they are."""
    if targets is None or targets.dtype.kind != "f":
        return targets
    return targets.astype(x.dtype)


def set_aside(
    rows: np.ndarray, targets: np.ndarray | None, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to keep and rows to hold out, class shares kept where that is possible.

    `targets` has one entry for each of the rows.
    """
    n_held_out = max(1, round(fraction * len(rows)))
    strata = strata_of(targets, n_held_out)
    kept, held = train_test_split(rows, test_size=n_held_out, stratify=strata, random_state=seed)
    return np.asarray(kept), np.asarray(held)


def strata_of(targets: np.ndarray | None, n_held_out: int) -> np.ndarray | None:
    """Class indices to keep the shares of, where every class can be on both sides."""
    if targets is None or targets.ndim > 1:
        return None
    counts = np.bincount(targets)
    counts = counts[counts > 0]
    return targets if counts.min() >= 2 and n_held_out >= len(counts) else None
