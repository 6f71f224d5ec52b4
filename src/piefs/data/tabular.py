"""A user's own table as a data set, in memory or read block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.encoder import ColumnEncoding, TableEncoder
from piefs.data.npy import mapped
from piefs.data.readers import read_table
from piefs.data.rows import SelectedRows
from piefs.data.splits import SHARE, Dataset, Split, SplitRows, split_table
from piefs.data.streamed import StreamedTable, encoded_rows, open_streamed
from piefs.data.table import Table, coded, listing, require_column
from piefs.data.target import (
    Target,
    check_training_target,
    label_texts,
    read_target,
    target_numbers,
)
from piefs.errors import InputError

TASKS = ("auto", "classification", "regression", "unsupervised")
MOST_HELD_OUT = 20_000  # rows for validation, for test, and of training to measure on, if streamed
SAMPLE_CELLS = 2**24  # of training rows that decide the encoding of the columns
TARGET_ROWS = 2**18  # that decide whether a streamed target holds classes or numbers


@dataclass(frozen=True)
class TableOptions:
    """What the columns of a table are for, and how its rows are cut.

    The target, the identifier, and what groups or orders rows is no feature. The task `auto` is
    regression if the target holds numbers with fractions or many distinct ones, else
    classification. `missing` is `error` or `impute`.
    """

    target: str | None
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    group: str | None = None
    time: str | None = None
    missing: str = "error"
    split_seed: int = 0
    task: str = "auto"

    def roles(self, names: tuple[str, ...], target: str | None, source: str) -> list[str]:
        """The columns that are no features; all that are named must be there."""
        if self.task not in TASKS:
            raise InputError(f"task {self.task!r} is unknown; choose one of {listing(TASKS)}")
        if target is None and self.task != "unsupervised":
            raise InputError(
                f"say which column to predict with --target; columns are {listing(names)}"
            )
        if self.group is not None and self.time is not None:
            raise InputError("--group and --time both decide the splits; give one of them")
        roles = {self.id_column: "id", self.group: "group", self.time: "time"}
        roles |= dict.fromkeys(self.drop, "drop")
        if target is not None and target in roles:
            raise InputError(f"column {target!r} cannot be both --target and --{roles[target]}")
        named = [name for name in (target, *roles) if name is not None]
        for name in named:
            require_column(name, names, source)
        if set(named) >= set(names):
            raise InputError(f"{source} has no usable feature: no column is left")
        return named


@dataclass(frozen=True)
class EncodedTable:
    """A data set, how its columns were encoded, its rows without a label, and notices to show.

    `task` is the one asked for, or the one that the target suggested.
    """

    dataset: Dataset
    encoder: TableEncoder
    unlabeled: np.ndarray | None
    task: str
    notices: tuple[str, ...]


@dataclass(frozen=True)
class _Cut:
    """The rows in memory, their numbers in the file, and the places of each split among them.

    `train` are the numbers of all training rows, of which a part may be in memory.
    """

    table: Table
    rows: np.ndarray
    places: SplitRows
    train: np.ndarray
    target: Target
    target_name: str | None
    task: str
    roles: list[str]
    notices: list[str]


def load_table(path: Path, options: TableOptions, *, streamed: bool = False) -> EncodedTable:
    """Read a file, cut its rows 70/15/15, and encode its columns as the training rows suggest.

    Rows are drawn at random, with class shares kept if there are classes; or `group` by group; or
    in the order of `time`, the latest for test. If `streamed`, the training rows stay in the file,
    at most 20,000 rows each are held out, and the target may be an `.npy` file.
    """
    path = Path(path)
    source = open_streamed(path) if streamed else read_table(path)
    cut = _whole(source, options) if isinstance(source, Table) else _sampled(source, options)
    encoder = TableEncoder.fit(cut.table.without(cut.roles), options.missing, cut.places[0])
    columns = tuple(_without_counter(column, cut) for column in encoder.columns)
    encoder = replace(encoder, columns=columns)
    x, y = encoder.transform(cut.table), cut.target.y
    train, validation, test = (
        Split(x[at], y[cut.rows[at]], cut.table.take(at)) for at in cut.places
    )
    dataset = Dataset(
        path.stem,
        *(train, validation, test),
        class_names=cut.target.class_names,
        feature_names=encoder.feature_names,
        description=f"{path.name}: {len(source):,} rows, {len(encoder.used)} columns used",
        standardize=True,
        target_name=cut.target_name or "y",
    )
    unlabeled = None
    if isinstance(source, StreamedTable):
        in_file: Any = SelectedRows(encoded_rows(source, encoder), cut.train)
        sample = train.take(_at_most(np.arange(len(train)), options.split_seed))
        dataset = replace(dataset, train=Split(in_file, y[cut.train]), sample=sample)
    elif not cut.target.known.all():
        unlabeled = x[~cut.target.known]
    return EncodedTable(dataset, encoder, unlabeled, cut.task, tuple(cut.notices))


def _whole(table: Table, options: TableOptions) -> _Cut:
    """All rows, in memory."""
    roles = options.roles(table.names, options.target, table.source)
    notices: list[str] = []
    task, target = read_target(table, options.target, options.task, notices)
    parts = split_table(table, target, np.flatnonzero(target.known), options, notices)
    check_training_target(target, parts[0], table.source, notices)
    rows = np.arange(len(table))
    return _Cut(table, rows, parts, parts[0], target, options.target, task, roles, notices)


def _without_counter(column: ColumnEncoding, cut: _Cut) -> ColumnEncoding:
    """Dropped if it counts the rows, which some of them alone cannot show."""
    cells = cut.table.columns[column.name]
    if column.kind != "number" or cells.dtype == object or len(cells) < 3:
        return column
    counts = np.all(cells - cut.rows == cells[0] - cut.rows[0])
    return ColumnEncoding(column.name, "dropped", reason="identifier") if counts else column


# --- block by block ----------------------------------------------------------------------------


def is_target_file(target: str | None) -> bool:
    """Whether a target is named by a file of its own."""
    return target is not None and target.lower().endswith(".npy") and Path(target).is_file()


def _sampled(table: StreamedTable, options: TableOptions) -> _Cut:
    """The rows to hold out, and a sample of the training rows, which judges the columns."""
    name, cells = _target_cells(table, options.target)
    of_its_own = (str(name),) if cells is not None and name not in table.names else ()
    roles = options.roles((*table.names, *of_its_own), name, table.source)
    notices = [f"{Path(table.source).name} is read block by block: {len(table):,} rows"]
    task, target = _streamed_target(table, name, cells, options.task, notices)
    parts = _streamed_splits(table, target, options, notices)
    check_training_target(target, parts[0], table.source, notices)
    most = max(MOST_HELD_OUT, SAMPLE_CELLS // len(table.names))
    sample = _at_most(parts[0], options.split_seed, most)
    if len(sample) < len(parts[0]):
        notices.append(
            f"columns are judged by {len(sample):,} training rows, medians and categories among "
            "them"
        )
    held = (sample, *parts[1:])
    rows = np.unique(np.concatenate(held))
    a, b, c = (np.searchsorted(rows, part) for part in held)
    return _Cut(table.take(rows), rows, (a, b, c), parts[0], target, name, task, roles, notices)


def _target_cells(table: StreamedTable, target: str | None) -> tuple[str | None, Any]:
    """The name of the target and its cells: a column, or an `.npy` file of labels."""
    if target in table.names:
        return target, table.column(str(target))
    if not is_target_file(target):
        return target, None  # none is asked for, or `features` raises: there is no such column
    path = Path(str(target))
    cells = np.array(mapped(path))
    if cells.shape != (len(table),) or cells.dtype.kind not in "biufU":
        raise InputError(
            f"{path} holds {cells.dtype}{list(cells.shape)}; give one label for each of the "
            f"{len(table):,} rows of {table.source}"
        )
    return path.stem, cells


def _streamed_target(
    table: StreamedTable, name: str | None, cells: Any, task: str, notices: list[str]
) -> tuple[str, Target]:
    """The target as `read_target` gives it, judged by some of its cells if they are very many."""
    if name is None:
        return task, Target(np.zeros(len(table), np.int32), np.ones(len(table), bool), ("all",))
    distinct, codes = coded(cells)
    judged = cells
    if len(cells) > TARGET_ROWS:
        spread = np.linspace(0, len(cells) - 1, TARGET_ROWS).astype(np.int64)
        judged = np.concatenate([cells[spread], distinct[:TARGET_ROWS]])
    task, target = read_target(Table({name: judged}, table.source), name, task, notices)
    if not target.class_names:
        numbers = target_numbers(Table({name: cells}, table.source), name)
        return task, Target(numbers, ~np.isnan(numbers), ())
    labels = label_texts(Table({name: distinct}, table.source), name)
    found = Target.of_labels(labels, target.class_names)
    return task, Target(found.y[codes], found.known[codes], found.class_names)


def _streamed_splits(
    table: StreamedTable, target: Target, options: TableOptions, notices: list[str]
) -> SplitRows:
    """Rows for training, validation and test in the file's order; few of many are held out."""
    labeled, seed = np.flatnonzero(target.known), options.split_seed
    if len(labeled) < len(target.known):
        notices.append("rows without a target are left out: X_unlabeled needs them in memory")
    by = [name for name in (options.group, options.time) if name is not None]
    if not by and SHARE * len(labeled) > MOST_HELD_OUT:
        drawn = np.random.default_rng(seed).choice(len(labeled), 2 * MOST_HELD_OUT, replace=False)
        held = labeled[drawn]
        return np.delete(labeled, drawn), np.sort(held[::2]), np.sort(held[1::2])
    columns = {name: table.column(name) for name in by} or {"row": np.arange(len(table))}
    parts = split_table(Table(columns, table.source), target, labeled, options, notices)
    return np.sort(parts[0]), _at_most(parts[1], seed), _at_most(parts[2], seed)


def _at_most(rows: np.ndarray, seed: int, most: int | None = None) -> np.ndarray:
    """The rows, or as many of them as are held in memory, in order."""
    most = MOST_HELD_OUT if most is None else most
    if len(rows) > most:
        rows = np.random.default_rng(seed).choice(rows, most, replace=False)
    return np.sort(rows)
