"""A user's own table that is read block by block, as a data set.

Training rows stay in their file; those held out, and some of training for measures, are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.codes import coded
from piefs.data.encoder import ColumnEncoding, TableEncoder
from piefs.data.npy import read_array
from piefs.data.rows import SelectedRows
from piefs.data.splits import Dataset, Rows, Split
from piefs.data.streamed import StreamedTable, encoded_rows, open_streamed
from piefs.data.table import Table
from piefs.data.tabular import (
    SHARE,
    OwnData,
    Target,
    check_training_rows,
    feature_columns,
    label_texts,
    read_target,
    rows_of_splits,
    target_numbers,
)
from piefs.errors import InputError

MOST_HELD_OUT = 20_000  # rows for validation, for test, and of training to measure on
TARGET_ROWS = 2**18  # that say whether a target holds classes or numbers


def is_target_file(target: str | None) -> bool:
    """Whether a target is named by a file of its own."""
    return target is not None and target.lower().endswith(".npy") and Path(target).is_file()


def load_large(
    path: Path,
    *,
    target: str | None,
    drop: Sequence[str] = (),
    id_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    missing: str = "error",
    split_seed: int = 0,
    task: str = "auto",
) -> OwnData:
    """As `load_own`, of a table that is read block by block; the target may be an `.npy` file.

    At most 20,000 rows each are held out for validation and for test. Columns are judged by all
    training rows, or by a sample where those are very many.
    """
    table = open_streamed(path)
    name, cells = _target_cells(table, target)
    head = next(table.blocks())
    if name is not None and name not in head.columns:
        head = Table({**head.columns, name: np.zeros(len(head))}, head.source)
    roles = {"--target": name, "--id": id_column, "--group": group, "--time": time}
    features = feature_columns(head, roles, drop, task).names
    notices = [f"{Path(path).name} is read block by block: {len(table):,} rows"]
    task, truth = _target(table, name, cells, task, notices)
    by_role = {column: table.column(column) for column in (group, time) if column is not None}
    roles_table = Table(by_role, table.source) if by_role else head
    parts = _splits(roles_table, truth, group, time, split_seed, notices)
    check_training_rows(truth, parts[0], head, notices)
    encoder = _encoder(table, features, missing, parts[0], notices)
    x = encoded_rows(table, encoder)
    measured = _some(parts[0], split_seed)
    held = {"validation": parts[1], "test": parts[2], "sample": measured}
    read = _read(table, encoder, truth, held)
    in_file: Any = SelectedRows(x, parts[0])  # the one split that is not in memory
    dataset = Dataset(
        Path(path).stem,
        Split(in_file, truth.y[parts[0]]),
        read["validation"],
        read["test"],
        sample=read["sample"],
        class_names=truth.class_names,
        feature_names=encoder.feature_names,
        description=f"{Path(path).name}: {len(table):,} rows, {len(encoder.used)} columns used",
        standardize=True,
        target_name=name or "y",
    )
    return OwnData(dataset, encoder, None, task, tuple(notices))


def _target_cells(table: StreamedTable, target: str | None) -> tuple[str | None, np.ndarray | None]:
    """The name of the target and its cells: a column, or an `.npy` file of labels."""
    if target is None:
        return None, None
    if target in table.names:
        return target, table.column(target)
    if not is_target_file(target):
        return target, None  # `feature_columns` says that there is no such column
    cells = read_array(Path(target))
    if cells.shape != (len(table),) or cells.dtype.kind not in "biufU":
        raise InputError(
            f"{target} holds {cells.dtype}{list(cells.shape)}; give one label for each of the "
            f"{len(table):,} rows of {table.source}"
        )
    return Path(target).stem, cells


def _target(
    table: StreamedTable, name: str | None, cells: np.ndarray | None, task: str, notices: list[str]
) -> tuple[str, Target]:
    """The target as `load_own` has it, judged by some of its cells where they are very many."""
    if name is None or cells is None:
        return task, Target(np.zeros(len(table), np.int32), np.ones(len(table), bool), ("all",))
    distinct, codes = coded(cells)
    judged = cells
    if len(cells) > TARGET_ROWS:
        spread = np.linspace(0, len(cells) - 1, TARGET_ROWS).astype(np.int64)
        judged = np.concatenate([cells[spread], distinct[:TARGET_ROWS]])
    task, truth = read_target(Table({name: judged}, table.source), name, task, notices)
    if not truth.class_names:
        numbers = target_numbers(Table({name: cells}, table.source), name)
        return task, Target(numbers, ~np.isnan(numbers), ())
    index = {label: i for i, label in enumerate(truth.class_names)}
    labels = label_texts(Table({name: distinct}, table.source), name)
    y = np.array([index.get(label, -1) for label in labels], np.int32)[codes]
    return task, Target(y, y >= 0, truth.class_names)


def _splits(
    table: Table,
    truth: Target,
    group: str | None,
    time: str | None,
    seed: int,
    notices: list[str],
) -> Rows:
    """Rows for training, validation and test, as the file has them; few of many are held out."""
    labeled = np.flatnonzero(truth.known)
    if len(labeled) < len(truth.known):
        notices.append("rows without a target are left out: X_unlabeled needs them in memory")
    if group is None and time is None and SHARE * len(labeled) > MOST_HELD_OUT:
        drawn = np.random.default_rng(seed).choice(len(labeled), 2 * MOST_HELD_OUT, replace=False)
        held = labeled[drawn]
        return np.delete(labeled, drawn), np.sort(held[::2]), np.sort(held[1::2])
    train, validation, test = rows_of_splits(table, truth, group, time, seed, notices)
    return np.sort(train), _some(validation, seed), _some(test, seed)


def _some(rows: np.ndarray, seed: int) -> np.ndarray:
    """At most so many rows as are read at once, in order."""
    if len(rows) <= MOST_HELD_OUT:
        return np.sort(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, MOST_HELD_OUT, replace=False))


def _encoder(
    table: StreamedTable,
    features: Sequence[str],
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
    """Left out where it counts the rows, which neighbours in a sample alone cannot tell."""
    cells = sample.columns[column.name]
    if column.kind != "number" or cells.dtype == object or len(rows) < 3:
        return column
    if np.any(cells - rows != cells[0] - rows[0]):
        return column
    return ColumnEncoding(column.name, "dropped", reason="identifier")


def _read(
    table: StreamedTable, encoder: TableEncoder, truth: Target, parts: dict[str, np.ndarray]
) -> dict[str, Split]:
    """Splits in memory, all of them read in one pass."""
    rows = np.unique(np.concatenate(list(parts.values())))
    found = table.take(rows)
    x = encoder.transform(found)
    places = {name: np.searchsorted(rows, part) for name, part in parts.items()}
    return {name: Split(x[at], truth.y[parts[name]], found.take(at)) for name, at in places.items()}
