"""From checked arrays to the rows that training sees: scaled, weighted, some set aside."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from piefs.data.rows import Rows, is_lazy
from piefs.errors import InputError
from piefs.training.batches import Samples
from piefs.training.sharding import ONE, Devices

SCALING_ROWS, SCALING_ELEMENTS = 2**16, 2**23  # that are in memory at a time, at most

MOST_IN_STRATA = 2**22

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-15, 1e15
"""Of the largest sample weight: the squares of sums of very many of them are single precision's."""


class Moments(NamedTuple):
    """The total weight of some rows, and mean and mean square deviation of each column."""

    mass: float
    mean: np.ndarray
    spread: np.ndarray

    def with_more(self, other: Moments) -> Moments:
        """The moments of these rows and others; deviations are moved to the common mean."""
        if other.mass == 0 or self.mass == 0:
            return self if other.mass == 0 else other
        mass = self.mass + other.mass
        share, move = other.mass / mass, other.mean - self.mean
        spread = (1 - share) * (self.spread + share * move**2) + share * other.spread
        return Moments(mass, self.mean + share * move, spread)


def _moments(block: np.ndarray, weight: np.ndarray | None) -> Moments:
    mass = float(len(block)) if weight is None else float(weight.sum())
    if mass == 0:
        return Moments(0.0, np.zeros(block.shape[1]), np.zeros(block.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # told by `scaling_of`
        mean = np.average(block, axis=0, weights=weight)
        return Moments(mass, mean, np.average((block - mean) ** 2, axis=0, weights=weight))


def scaling_of(
    X: Rows, weight: np.ndarray | None, devices: Devices = ONE
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; a constant column keeps scale 1.

    Block by block, so that rows may be read as they are needed, by one process each.
    """
    n_rows = min(SCALING_ROWS, max(1, SCALING_ELEMENTS // X.shape[1]))
    found = _moments(np.zeros((0, X.shape[1])), None)
    for start in devices.share_of(range(0, len(X), n_rows)):
        rows = slice(start, start + n_rows)
        block = X[rows].astype(np.float64)
        found = found.with_more(_moments(block, None if weight is None else weight[rows]))
    told = devices.gathered(np.concatenate([[found.mass], found.mean, found.spread]))
    parts = [Moments(row[0], *np.split(row[1:], 2)) for row in told]
    _, center, squares = reduce(Moments.with_more, parts)
    if not np.isfinite(center).all():
        column = int(np.argmin(np.isfinite(center)))
        raise InputError(
            f"column {column} has gaps or infinities; fill or leave out such rows first"
        )
    if not np.isfinite(squares).all():
        column = int(np.argmin(np.isfinite(squares)))
        raise InputError(
            f"column {column} has values whose squares overflow: divide it by a constant first"
        )
    deviation = np.sqrt(squares)
    tiny = 10 * np.finfo(np.float64).eps * np.abs(center)
    return center, np.where(deviation > tiny, deviation, 1.0)


def checked_weight(sample_weight: Any, X: Rows) -> np.ndarray | None:
    """One weight for each row, such that sums and squares of them can be computed with."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    most = float(np.max(weight))
    if not most:
        raise InputError("all sample weights are zero: give some rows a positive one")
    if not SMALLEST_WEIGHT <= most <= LARGEST_WEIGHT:
        raise InputError(
            f"sample weights reach {most:.2g}, which is beyond what can be computed with in single "
            "precision; only their ratios count, so divide them by their mean"
        )
    return weight


def check_scaling(center: np.ndarray, scale: np.ndarray, dtype: np.dtype) -> None:
    """Refuse columns whose mean or spread a model of this precision cannot hold."""
    limits = np.finfo(dtype)
    held = (np.abs(center) <= limits.max) & (scale <= limits.max) & (scale >= limits.tiny)
    if not held.all():
        column = int(np.argmin(held))
        raise InputError(
            f"column {column} has mean {center[column]:.2g} and spread {scale[column]:.2g}, beyond "
            f'what {dtype} can hold: divide it by a constant first, or take dtype="float64"'
        )


def check_reach(x: Rows) -> None:
    """Refuse inputs that overflow: the Gram error of a map is of fourth order in them."""
    if is_lazy(x):
        return  # that would take a pass; numbers that are not finite are met in reading
    reach = np.maximum(np.max(x, axis=0), -np.min(x, axis=0)).astype(np.float64)
    limit = float(np.finfo(x.dtype).max) ** 0.25
    if not (reach <= limit).all():
        column = int(np.argmin(reach <= limit))
        raise InputError(
            f"column {column} reaches {reach[column]:.2g} as the maps see it, and their Gram "
            f"error, of fourth order in the inputs, would overflow beyond {limit:.1g}: use "
            'standardize=True, scale the column, or take dtype="float64"'
        )


def samples_of(
    x: Rows,
    targets: np.ndarray | None,
    weight: np.ndarray | None,
    class_weight: Any,
    unlabeled: Rows | None,
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
        np.concatenate([x[:], unlabeled[:]]),
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
