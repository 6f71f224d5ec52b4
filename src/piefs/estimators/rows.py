"""From checked arrays to the rows that a solver sees: some set aside, all scaled and weighted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from piefs.core.model import Scaling
from piefs.data.rows import Rows, ScaledRows, block_sum, is_far, is_lazy, quick, scratch, taken
from piefs.errors import InputError
from piefs.estimators.decisions import Facts, rows_to_learn_from
from piefs.training.batches import Samples, Validation
from piefs.training.config import Settings
from piefs.training.sharding import ONE, Devices
from piefs.training.solvers import Task

SCALING_ROWS, SCALING_ELEMENTS = 2**16, 2**23  # that are in memory at a time, at most
FIRST_ROWS = 1000
CLIP = 3.0  # of robust scaling
MOST_HELD_OUT = 20_000  # of rows in a file, which are read at once
MOST_IN_STRATA = 2**22

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-15, 1e15
"""Of the largest sample weight: the squares of sums of very many of them are single precision's."""


@dataclass(frozen=True)
class TrainingRows:
    """What a fit is given, checked; `held_out` are validation rows and their targets.

    `parts` number the rows kept and those set aside, if some of the rows given have been.
    """

    X: Rows
    targets: np.ndarray | None = None
    weight: np.ndarray | None = None
    class_weight: Any = None
    unlabeled: Rows | None = None
    held_out: tuple[Rows, np.ndarray] | None = None
    groups: np.ndarray | None = None
    parts: tuple[np.ndarray, np.ndarray] | None = None

    def facts(self, solver: str | None) -> Facts:
        """What decides on settings."""
        classes = None if self.targets is None or self.targets.ndim > 1 else self.targets
        return Facts(
            rows_to_learn_from(solver, self.X, self.unlabeled),
            self.X.shape[1],
            self.targets is not None,
            is_lazy(self.X),
            0 if classes is None else int(classes.max()) + 1,
        )

    def with_rows_set_aside(self, settings: Settings) -> "TrainingRows":
        """The same with rows held out, if the settings need some and none are given.

        Whole groups, if there are any; else every class keeps its share of them if it can.
        """
        if self.targets is None or self.held_out is not None or not settings.early_stopping:
            return self
        n, is_streamed = len(self.X), is_lazy(self.X)
        n_held = max(1, round(settings.held_out * n))
        n_held = min(n_held, MOST_HELD_OUT) if is_streamed else n_held
        options: dict[str, Any] = {"test_size": n_held / n, "random_state": settings.seed}
        if self.groups is not None:
            kept, held = next(GroupShuffleSplit(1, **options).split(self.groups, None, self.groups))
        else:
            options |= {"test_size": n_held, "stratify": _strata(self.targets, n_held)}
            kept, held = map(np.asarray, train_test_split(np.arange(n), **options))
        kept = np.sort(kept) if is_streamed else kept  # neighbours in a file stay so
        return replace(
            self,
            X=taken(self.X, kept),
            targets=self.targets[kept],
            weight=None if self.weight is None else self.weight[kept],
            groups=None if self.groups is None else self.groups[kept],
            held_out=(self.X[held], self.targets[held]),
            parts=(kept, held),
        )

    def scaling(
        self, settings: Settings, devices: Devices = ONE, *, standardize: bool = True
    ) -> Scaling:
        """The scaling of the labelled rows, or of all where a graph does not tell them apart.

        In closed form it is the robust one.
        """
        n_features = self.X.shape[1]
        if not standardize:
            return Scaling(np.zeros(n_features), np.ones(n_features))
        X, weight, more = self.X, self.weight, self.unlabeled
        is_lazily_read = is_lazy(X) or is_lazy(more)
        if settings.solver == "spectral" and more is not None and not is_lazily_read:
            X = np.concatenate([X[:], more[:]])
            weight = None if weight is None else np.concatenate([weight, np.ones(len(more))])
        scaling = scaling_of(X, weight, devices)
        if settings.solver == "eigen":
            scaling = robust_scaling(X, weight, scaling.scale)
        check_scaling(scaling, np.dtype(settings.optimizer.dtype))
        return scaling

    def samples(self, scaling: Scaling, settings: Settings, devices: Devices = ONE) -> Samples:
        """The rows as a solver takes them; unlabelled ones follow, with a label weight of zero."""
        dtype = np.dtype(settings.optimizer.dtype)
        x, label_weight = _scaled(self.X, scaling, dtype), self.weight
        if settings.solver != "eigen" or not is_far(x):
            x = quick(x)
        if self.targets is not None and self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, self.targets)
            label_weight = by_class if label_weight is None else by_class * label_weight
        targets = None if self.targets is None else _as(dtype, self.targets)
        samples = Samples(x, targets, self.weight, label_weight, self.groups, devices)
        if self.unlabeled is not None:
            samples = _followed_by(samples, _scaled(self.unlabeled, scaling, dtype))
        check_reach(samples.x)
        return samples

    def validation(self, scaling: Scaling, settings: Settings, task: Task) -> Validation | None:
        """The held-out rows as a solver takes them."""
        if self.held_out is None:
            return None
        (x, targets), dtype = self.held_out, np.dtype(settings.optimizer.dtype)
        score = partial(task.scores, targets=_as(dtype, targets))
        return Validation(_scaled(x, scaling, dtype), score)

    def in_order(self, phi: np.ndarray, of: Callable[[Rows], np.ndarray]) -> np.ndarray:
        """Coordinates of all rows as they were given, with those `of` the rows set aside."""
        if self.parts is None or self.held_out is None:
            return phi
        (kept, held), n = self.parts, len(self.parts[0])
        found = scratch((len(phi) + len(held), phi.shape[1]), phi.dtype)
        found[kept], found[held] = phi[:n], of(self.held_out[0])
        found[n + len(held) :] = phi[n:]
        return found


def _scaled(X: Rows, scaling: Scaling, dtype: np.dtype) -> Rows:
    """Rows as the maps take them; those that are read when needed are scaled then, too."""
    scaled = ScaledRows(X, scaling, dtype)
    return scaled if is_lazy(X) else scaled[:]


def _as(dtype: np.dtype, targets: np.ndarray) -> np.ndarray:
    """Targets that are numbers in the precision of the inputs; class indices as they are."""
    return targets.astype(dtype) if targets.dtype.kind == "f" else targets


def _followed_by(samples: Samples, unlabeled: Rows) -> Samples:
    if is_lazy(samples.x) or is_lazy(unlabeled):
        raise InputError(
            "X_unlabeled goes with an X in memory: read both, or put them into one file"
        )
    n = len(unlabeled)

    def extended(given: np.ndarray, value: float) -> np.ndarray:
        return np.concatenate([given, np.full((n, *given.shape[1:]), value, given.dtype)])

    return replace(
        samples,
        x=np.concatenate([samples.x[:], unlabeled[:]]),
        target=None if samples.target is None else extended(samples.target, 0),
        weight=extended(samples.weights, 1),
        label_weight=extended(samples.label_weights, 0),
        groups=None if samples.groups is None else extended(samples.groups, -1),
    )


def scaling_of(X: Rows, weight: np.ndarray | None = None, devices: Devices = ONE) -> Scaling:
    """By mean and standard deviation of each column; a constant column keeps scale 1.

    Block by block, so that rows may be read as they are needed, by one process each; sums are taken
    about the mean of the first rows, or they would lose the digits of columns far from zero.
    """
    n_rows = min(SCALING_ROWS, max(1, SCALING_ELEMENTS // X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        shift = X[:FIRST_ROWS].mean(axis=0, dtype=np.float64)
        weights = np.broadcast_to(1.0, len(X)) if weight is None else weight
        moments = partial(_moments, shift=shift)
        sums = block_sum(moments, X, n_rows, weights, share_of=devices.share_of)
        mass, first, second = devices.total(sums)
        center, squares = shift + first / mass, second / mass - (first / mass) ** 2
    for values, what in (
        (center, "gaps or infinities; fill or leave out such rows first"),
        (squares, "values whose squares overflow: divide it by a constant first"),
    ):
        if not np.isfinite(values).all():
            raise InputError(f"column {int(np.argmin(np.isfinite(values)))} has {what}")
    deviation = np.sqrt(np.maximum(squares, 0))
    tiny = 10 * np.finfo(np.float64).eps * np.abs(center)
    return Scaling(center, np.where(deviation > tiny, deviation, 1.0))


def _moments(_: int, block: np.ndarray, w: np.ndarray, *, shift: np.ndarray) -> np.ndarray:
    """Σ w, Σ w(x − shift) and Σ w(x − shift)², (3, d)."""
    block = block.astype(np.float64) - shift
    return np.stack([np.full_like(shift, w.sum()), w @ block, w @ block**2])


def robust_scaling(X: Rows, weight: np.ndarray | None, deviation: np.ndarray) -> Scaling:
    """By median and interquartile range, that of a normal distribution being 1.35; clipped.

    Where half of a column is one number, its standard deviation counts.
    """
    rows = np.linspace(0, len(X) - 1, min(len(X), SCALING_ROWS)).astype(int)
    part = np.ones(len(rows)) if weight is None else weight[rows]
    quartiles: Any = {"weights": part, "method": "inverted_cdf"}  # two of a row are a weight of two
    low, median, high = np.quantile(
        np.asarray(X[rows], float), [0.25, 0.5, 0.75], axis=0, **quartiles
    )
    spread = (high - low) / 1.35
    return Scaling(median, np.where(spread > 0, spread, deviation), CLIP)


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


def group_numbers(groups: Any, X: Rows) -> np.ndarray:
    """The group of each row as a number; two at least, since one is left out at a time."""
    names, numbers = np.unique(column_or_1d(groups), return_inverse=True)
    if len(numbers) != len(X):
        raise InputError(f"groups has {len(numbers):,} labels, X has {len(X):,} rows")
    if len(names) < 2:
        raise InputError("groups names one group for all rows; leave it out, or name two at least")
    return numbers


def check_scaling(scaling: Scaling, dtype: np.dtype) -> None:
    """Refuse columns whose mean or spread a model of this precision cannot hold."""
    limits, center, scale = np.finfo(dtype), scaling.center, scaling.scale
    held = (np.abs(center) <= limits.max) & (scale <= limits.max) & (scale >= limits.tiny)
    if not held.all():
        column = int(np.argmin(held))
        raise InputError(
            f"column {column} has mean {center[column]:.2g} and spread {scale[column]:.2g}, beyond "
            f'what {dtype} can hold: divide it by a constant first, or Optimizer(dtype="float64")'
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
            'standardize=True, scale the column, or Optimizer(dtype="float64")'
        )


def _strata(targets: np.ndarray, n_held_out: int) -> np.ndarray | None:
    """Class indices to keep the shares of, if every class can be on both sides.

    Among very many rows chance keeps them well enough, and in less memory.
    """
    if targets.ndim > 1 or len(targets) > MOST_IN_STRATA:
        return None
    counts = np.bincount(targets)
    counts = counts[counts > 0]
    return targets if counts.min() >= 2 and n_held_out >= len(counts) else None
