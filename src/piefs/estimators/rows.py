"""From checked arrays to the rows that training sees: scaled, weighted, some set aside."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight

from piefs.batches import Samples
from piefs.errors import InputError
from piefs.sources import Rows, is_lazy

SCALING_ROWS, SCALING_ELEMENTS = 2**16, 2**23  # that are in memory at a time, at most

MOST_IN_STRATA = 2**22


def scaling_of(X: Rows, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; a constant column keeps scale 1.

    Block by block, so that rows may be read as they are needed; a sum of squares about each
    block's own mean is moved to the common one.
    """
    n_rows = min(SCALING_ROWS, max(1, SCALING_ELEMENTS // X.shape[1]))
    total, center, squares = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), n_rows):
        block = X[start : start + n_rows].astype(np.float64)
        w = None if weight is None else weight[start : start + n_rows]
        mass = float(len(block)) if w is None else float(w.sum())
        if mass == 0:
            continue
        mean = np.average(block, axis=0, weights=w)
        spread = np.average((block - mean) ** 2, axis=0, weights=w)
        share = mass / (total + mass)
        squares = (1 - share) * (squares + share * (mean - center) ** 2) + share * spread
        center = mean if share == 1 else center + share * (mean - center)
        total += mass
    if not np.isfinite(center).all():
        column = int(np.argmin(np.isfinite(center)))
        raise InputError(
            f"column {column} has gaps or infinities; fill or leave out such rows first"
        )
    deviation = np.sqrt(squares)
    tiny = 10 * np.finfo(np.float64).eps * np.abs(center)
    return center, np.where(deviation > tiny, deviation, 1.0)


def samples_of(
    x: Rows,
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
    if is_lazy(x) or is_lazy(unlabeled):
        raise InputError(
            "X_unlabeled goes with an X in memory: read both, or put them into one file"
        )

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


def as_precise_as(x: Rows, targets: np.ndarray | None) -> np.ndarray | None:
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
    """Class indices to keep the shares of, where every class can be on both sides.

    Among very many rows chance keeps them well enough, and in less memory.
    """
    if targets is None or targets.ndim > 1 or len(targets) > MOST_IN_STRATA:
        return None
    counts = np.bincount(targets)
    counts = counts[counts > 0]
    return targets if counts.min() >= 2 and n_held_out >= len(counts) else None
