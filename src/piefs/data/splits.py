"""A data set cut into training, validation and test rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from piefs.data.streamed import Source
from piefs.data.table import Table, is_missing, kind_of, parse, texts
from piefs.data.target import Target
from piefs.errors import InputError

if TYPE_CHECKING:
    from piefs.data.tabular import TableOptions

SHARE = 0.15  # of the rows of a user's own table, for validation and for test each

SplitRows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The numbers of the rows for training, for validation and for test."""


@dataclass(frozen=True)
class Split:
    """Rows and their labels, or the numbers to predict; `table` has them as they are in a file."""

    x: np.ndarray
    y: np.ndarray
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: np.ndarray) -> Split:
        """The given rows, in the given order."""
        table = None if self.table is None else self.table.take(rows)
        return Split(self.x[rows], self.y[rows], table)


@dataclass(frozen=True)
class Dataset:
    """Three splits and what is needed to read them.

    `y` holds class indices into `class_names`, or numbers (float64), and then `class_names` is
    empty; `target_name` is what a figure calls them. If training rows stay in a file, `sample` are
    some of them in memory. `standardize` says whether inputs are to be z-scored on training
    statistics; `image_shape` is set if a row is an image.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    description: str
    standardize: bool = False
    image_shape: tuple[int, int] | None = None
    target_name: str = "y"
    sample: Split | None = None

    @property
    def splits(self) -> dict[str, Split]:
        """The splits by name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    @property
    def is_regression(self) -> bool:
        """Whether there are numbers to predict, not classes."""
        return not self.class_names

    @property
    def in_memory(self) -> Dataset:
        """The same with training rows in memory: a sample if they are in a file."""
        return self if self.sample is None else replace(self, train=self.sample, sample=None)

    def head(self, n: int) -> Dataset:
        """The same data set with at most n rows in each split: a sample for a quick look."""
        parts = {name: part.take(np.arange(len(part))[:n]) for name, part in self.splits.items()}
        return replace(self, **parts)


def split_stratified(
    x: np.ndarray, y: np.ndarray, fractions: tuple[float, float] = (0.15, 0.15), seed: int = 0
) -> tuple[Split, Split, Split]:
    """Training, validation and test rows, class shares kept; `fractions` are the latter two's."""
    from sklearn.model_selection import train_test_split

    n_validation, n_test = (round(fraction * len(y)) for fraction in fractions)
    rest, test = train_test_split(
        np.arange(len(y)), test_size=n_test, stratify=y, random_state=seed
    )
    train, validation = train_test_split(
        rest, test_size=n_validation, stratify=y[rest], random_state=seed
    )
    return Split(x[train], y[train]), Split(x[validation], y[validation]), Split(x[test], y[test])


def split_table(
    table: Source,
    target: Target,
    rows: np.ndarray,
    options: TableOptions,
    notices: list[str],
) -> SplitRows:
    """Cut rows 70/15/15: by group, by time, with class shares kept, or at random."""
    if options.group is not None:
        return _split_by_group(table, options.group, rows, options.split_seed)
    if options.time is not None:
        notices.append(f"column {options.time!r} orders the rows and is not a feature")
        return _split_by_time(table, options.time, rows)
    if not target.class_names:
        return _split_random(rows, options.split_seed)
    counts, n_held_out = np.bincount(target.y[rows]), round(SHARE * len(rows))
    if counts.min() >= 3 and n_held_out >= len(counts):
        parts = split_stratified(rows, target.y[rows], seed=options.split_seed)
        return parts[0].x, parts[1].x, parts[2].x
    notices.append(
        f"the splits do not keep class shares: class {target.class_names[counts.argmin()]!r} has "
        f"{counts.min()} rows, and {n_held_out} rows are held out for {len(counts)} classes"
    )
    return _split_random(rows, options.split_seed)


def _split_random(rows: np.ndarray, seed: int) -> SplitRows:
    n_held_out = round(SHARE * len(rows))
    order = np.random.default_rng(seed).permutation(rows)
    return order[2 * n_held_out :], order[:n_held_out], order[n_held_out : 2 * n_held_out]


def _split_by_group(table: Source, group: str, rows: np.ndarray, seed: int) -> SplitRows:
    """Rows with the same value in a column stay together; the shares count groups."""
    from sklearn.model_selection import GroupShuffleSplit

    cells = texts(table.column(group))
    _require_values(table, group, "--group", rows[is_missing(cells[rows])])
    groups = cells[rows].astype(str)
    if len(set(groups)) < 3:
        raise InputError(
            f"{table.source}: column {group!r} has {len(set(groups))} groups; three splits need 3"
        )
    outer = GroupShuffleSplit(n_splits=1, test_size=SHARE, random_state=seed)
    rest, test = next(outer.split(groups, groups=groups))
    inner = GroupShuffleSplit(n_splits=1, test_size=SHARE / (1 - SHARE), random_state=seed)
    train, validation = next(inner.split(rest, groups=groups[rest]))
    return rows[rest[train]], rows[rest[validation]], rows[test]


def _split_by_time(table: Source, time: str, rows: np.ndarray) -> SplitRows:
    """The latest rows for test, those before them for validation."""
    cells = table.column(time)
    kind = kind_of(cells[rows])
    if kind not in ("number", "date"):
        row = rows[parse(cells[rows], "date")[1].argmax()]
        raise InputError(
            f"{table.source}: --time needs numbers, or dates such as 2024-01-31, but column "
            f"{time!r} has {str(cells[row])!r} in {table.place(row)}"
        )
    values, _ = parse(cells[rows], kind)
    _require_values(table, time, "--time", rows[np.isnan(values)])
    order = rows[np.argsort(values, kind="stable")]
    n_held_out = round(SHARE * len(order))
    return order[: -2 * n_held_out], order[-2 * n_held_out : -n_held_out], order[-n_held_out:]


def _require_values(table: Source, name: str, option: str, rows: np.ndarray) -> None:
    if len(rows):
        raise InputError(
            f"{table.source}: {option} needs a value in every row, but column {name!r} lacks "
            f"{len(rows):,} (first: {table.place(rows[0])}); fill them in"
        )
