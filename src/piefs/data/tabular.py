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
from piefs.data.table import Table, coded, listing
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

    def features(self, table: Table, target: str | None) -> Table:
        """The columns that may become features; all that are named must be there."""
        if self.task not in TASKS:
            raise InputError(f"task {self.task!r} is unknown; choose one of {listing(TASKS)}")
        if target is None and self.task != "unsupervised":
            raise InputError(
                f"say which column to predict with --target; columns are {listing(table.names)}"
            )
        if self.group is not None and self.time is not None:
            raise InputError("--group and --time both decide the splits; give one of them")
        roles = {self.id_column: "id", self.group: "group", self.time: "time"}
        roles |= dict.fromkeys(self.drop, "drop")
        if target is not None and target in roles:
            raise InputError(f"column {target!r} cannot be both --target and --{roles[target]}")
        named = [name for name in (target, *roles) if name is not None]
        for name in named:
            table.column(name)
        if set(named) >= set(table.names):
            raise InputError(f"{table.source} has no usable feature: no column is left")
        return table.without(named)


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


def load_table(path: Path, options: TableOptions, *, streamed: bool = False) -> EncodedTable:
    """Read a file, cut its rows 70/15/15, and encode its columns as the training rows suggest.

    Rows are drawn at random, with class shares kept if there are classes; or `group` by group; or
    in the order of `time`, the latest for test. If `streamed`, the training rows stay in the file,
    at most 20,000 rows each are held out, and the target may be an `.npy` file.
    """
    return _streamed(Path(path), options) if streamed else _in_memory(Path(path), options)


def _in_memory(path: Path, options: TableOptions) -> EncodedTable:
    table = read_table(path)
    features = options.features(table, options.target)
    notices: list[str] = []
    task, target = read_target(table, options.target, options.task, notices)
    labeled = np.flatnonzero(target.known)
    parts = split_table(table, target, labeled, options, notices)
    check_training_target(target, parts[0], table.source, notices)
    encoder = TableEncoder.fit(features, options.missing, parts[0])
    x = encoder.transform(features)
    train, validation, test = (Split(x[i], target.y[i], table.take(i)) for i in parts)
    about = _about(path, len(table), encoder, target, options.target)
    dataset = Dataset(path.stem, train, validation, test, **about)
    unlabeled = None if target.known.all() else x[~target.known]
    return EncodedTable(dataset, encoder, unlabeled, task, tuple(notices))


def _about(
    path: Path, n_rows: int, encoder: TableEncoder, target: Target, name: str | None
) -> dict[str, Any]:
    """What a data set knows beside its rows."""
    return {
        "class_names": target.class_names,
        "feature_names": encoder.feature_names,
        "description": f"{path.name}: {n_rows:,} rows, {len(encoder.used)} columns used",
        "standardize": True,
        "target_name": name or "y",
    }


# --- block by block ----------------------------------------------------------------------------


def is_target_file(target: str | None) -> bool:
    """Whether a target is named by a file of its own."""
    return target is not None and target.lower().endswith(".npy") and Path(target).is_file()


def _streamed(path: Path, options: TableOptions) -> EncodedTable:
    table = open_streamed(path)
    name, cells = _target_cells(table, options.target)
    head = next(table.blocks())
    if cells is not None:
        head = Table({**head.columns, str(name): np.zeros(len(head))}, head.source)
    features = options.features(head, name).names
    notices = [f"{path.name} is read block by block: {len(table):,} rows"]
    task, target = _streamed_target(table, name, cells, options.task, notices)
    parts = _streamed_splits(table, target, options, notices)
    check_training_target(target, parts[0], table.source, notices)
    encoder = _sampled_encoder(table, features, options.missing, parts[0], notices)
    x: Any = SelectedRows(encoded_rows(table, encoder), parts[0])
    sample = _at_most(parts[0], options.split_seed)
    held = {"validation": parts[1], "test": parts[2], "sample": sample}
    dataset = Dataset(
        path.stem,
        Split(x, target.y[parts[0]]),
        **_read(table, encoder, target, held),
        **_about(path, len(table), encoder, target, name),
    )
    return EncodedTable(dataset, encoder, None, task, tuple(notices))


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


def _at_most(rows: np.ndarray, seed: int) -> np.ndarray:
    """The rows, or as many of them as are held in memory, in order."""
    if len(rows) > MOST_HELD_OUT:
        rows = np.random.default_rng(seed).choice(rows, MOST_HELD_OUT, replace=False)
    return np.sort(rows)


def _sampled_encoder(
    table: StreamedTable,
    features: tuple[str, ...],
    missing: str,
    train: np.ndarray,
    notices: list[str],
) -> TableEncoder:
    """What becomes of the columns, judged by the training rows or by a sample of them."""
    rows = table.sample_rows()
    if len(rows) < len(table):
        notices.append(
            f"columns are judged by {len(rows):,} rows spread over the table, medians and "
            "categories among them"
        )
    sample = table.take(rows, features)
    encoder = TableEncoder.fit(sample, missing, np.flatnonzero(np.isin(rows, train)))
    columns = tuple(_without_counter(column, sample, rows) for column in encoder.columns)
    return replace(encoder, columns=columns)


def _without_counter(column: ColumnEncoding, sample: Table, rows: np.ndarray) -> ColumnEncoding:
    """Dropped if it counts the rows, which runs of a sample alone cannot show."""
    cells = sample.columns[column.name]
    if column.kind != "number" or cells.dtype == object or len(rows) < 3:
        return column
    counts = np.all(cells - rows == cells[0] - rows[0])
    return ColumnEncoding(column.name, "dropped", reason="identifier") if counts else column


def _read(
    table: StreamedTable, encoder: TableEncoder, target: Target, parts: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Splits in memory, all of them read in one pass."""
    rows = np.unique(np.concatenate(list(parts.values())))
    found = table.take(rows)
    x, read = encoder.transform(found), {}
    for name, part in parts.items():
        at = np.searchsorted(rows, part)
        read[name] = Split(x[at], target.y[part], found.take(at))
    return read
