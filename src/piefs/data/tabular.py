"""A user's own table as a data set, in memory or read block by block."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.datasets import Dataset, Split, split_stratified
from piefs.data.encoder import TableEncoder
from piefs.data.readers import read_table
from piefs.data.rows import SelectedRows
from piefs.data.streamed import Source, StreamedTable, encoded_rows, open_streamed
from piefs.data.table import Table, is_missing, kind_of, listing, parse, require_column, texts
from piefs.data.target import SplitRows, Target, learnable, read_target
from piefs.errors import InputError

TASKS = ("auto", "classification", "regression", "unsupervised")
TENTHS = 10  # of the time, of which each is left out as a whole
SHARE = 0.15  # of the rows for validation and for test each
MOST_HELD_OUT = 20_000  # rows for validation, for test, and of training to measure on, if streamed
SAMPLE_CELLS = 2**24  # of training rows that decide the encoding of the columns


@dataclass(frozen=True)
class TableOptions:
    """What the columns of a table are for, and how its rows are cut (docs/own-data.md)."""

    target: str | None
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    group: str | None = None
    time: str | None = None
    missing: str = "error"
    split_seed: int = 0
    task: str = "auto"

    def roles(self, table: Source) -> list[str]:
        """The columns that are no features; all that are named must be there."""
        names, target = table.names, self.target
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
            require_column(name, names, table.source)
        if set(named) >= set(names):
            raise InputError(f"{table.source} has no usable feature: no column is left")
        return named


@dataclass(frozen=True)
class EncodedTable:
    """A data set, how its columns were encoded, unlabeled rows, the task, and notices to show."""

    dataset: Dataset
    encoder: TableEncoder
    unlabeled: np.ndarray | None
    task: str
    notices: tuple[str, ...]


def load_table(path: Path, options: TableOptions, *, streamed: bool = False) -> EncodedTable:
    """Read a file, cut its rows 70/15/15, and encode its columns as the training rows suggest.

    Rows are drawn at random, with class shares kept if there are classes; or `group` by group; or
    in the order of `time`, the latest for test. If `streamed`, the training rows stay in the file
    and at most 20,000 rows each are held out.
    """
    path = Path(path)
    source = open_streamed(path) if streamed else read_table(path)
    notices = [f"{path.name} is read block by block: {len(source):,} rows"] if streamed else []
    roles = options.roles(source)
    task, target = read_target(source, options.target, options.task, notices)
    parts = _parts(source, target, options, notices)
    target, parts = learnable(target, parts, source.source, notices)
    table, rows, places = _in_memory(source, parts, options.split_seed, notices)
    encoder = TableEncoder.fit(table.without(roles), options.missing, places[0])
    x, y = encoder.transform(table), target.y
    splits = [Split(x[at], y[rows[at]], table.take(at)) for at in places]
    dataset = Dataset(
        path.stem,
        *splits,
        class_names=target.class_names,
        feature_names=encoder.feature_names,
        description=f"{path.name}: {len(source):,} rows, {len(encoder.used)} columns used",
        standardize=True,
        target_name=options.target or "y",
        groups=_groups_of(source, parts[0], options),
    )
    unlabeled = None
    if isinstance(source, StreamedTable):
        in_file: Any = SelectedRows(encoded_rows(source, encoder), parts[0])
        sample = splits[0].take(_at_most(np.arange(len(places[0])), options.split_seed))
        dataset = replace(dataset, train=Split(in_file, y[parts[0]]), sample=sample)
    elif not target.known.all():
        unlabeled = x[~target.known]
    return EncodedTable(dataset, encoder, unlabeled, task, tuple(notices))


def _parts(source: Source, target: Target, options: TableOptions, notices: list[str]) -> SplitRows:
    """Rows for training, validation and test; few of many are held out if they stay in a file."""
    labeled, seed = np.flatnonzero(target.known), options.split_seed
    if isinstance(source, Table):
        return split_table(source, target, labeled, options, notices)
    if len(labeled) < len(source):
        notices.append("rows without a target are left out: X_unlabeled needs them in memory")
    if options.group is options.time is None and SHARE * len(labeled) > MOST_HELD_OUT:
        drawn = np.random.default_rng(seed).choice(len(labeled), 2 * MOST_HELD_OUT, replace=False)
        held = labeled[drawn]
        return np.delete(labeled, drawn), np.sort(held[::2]), np.sort(held[1::2])
    parts = split_table(source, target, labeled, options, notices)
    return np.sort(parts[0]), _at_most(parts[1], seed), _at_most(parts[2], seed)


def _in_memory(
    source: Source, parts: SplitRows, seed: int, notices: list[str]
) -> tuple[Table, np.ndarray, SplitRows]:
    """The rows held in memory (a sample, if in a file), their numbers, and the parts' places."""
    if isinstance(source, Table):
        return source, np.arange(len(source)), parts
    sample = _at_most(parts[0], seed, max(MOST_HELD_OUT, SAMPLE_CELLS // len(source.names)))
    if len(sample) < len(parts[0]):
        notices.append(
            f"columns are judged by {len(sample):,} training rows, medians and categories among "
            "them"
        )
    held = (sample, *parts[1:])
    rows = np.unique(np.concatenate(held))
    a, b, c = (np.searchsorted(rows, part) for part in held)
    return source.take(rows), rows, (a, b, c)


def _at_most(rows: np.ndarray, seed: int, most: int | None = None) -> np.ndarray:
    """The rows, or as many of them as are held in memory, in order."""
    most = MOST_HELD_OUT if most is None else most
    if len(rows) > most:
        rows = np.random.default_rng(seed).choice(rows, most, replace=False)
    return np.sort(rows)


def split_table(
    table: Source, target: Target, rows: np.ndarray, options: TableOptions, notices: list[str]
) -> SplitRows:
    """Cut rows 70/15/15: by group, by time, with class shares kept, or at random."""
    seed, n = options.split_seed, round(SHARE * len(rows))
    if options.group is not None:
        return _split_by_group(table, options.group, rows, seed)
    if options.time is not None:
        notices.append(f"column {options.time!r} orders the rows and is not a feature")
        order = _ordered_by(table, options.time, rows)
        return order[: -2 * n], order[-2 * n : -n], order[-n:]
    if target.class_names:
        counts = np.bincount(target.y[rows])
        if counts.min() >= 3 and n >= len(counts):
            train, validation, test = split_stratified(rows, target.y[rows], seed=seed)
            return train.x, validation.x, test.x
        rarest = target.class_names[counts.argmin()]
        notices.append(
            f"the splits do not keep class shares: class {rarest!r} has {counts.min()} rows, "
            f"and {n} rows are held out for {len(counts)} classes"
        )
    order = np.random.default_rng(seed).permutation(rows)
    return order[2 * n :], order[:n], order[n : 2 * n]


def _split_by_group(table: Source, group: str, rows: np.ndarray, seed: int) -> SplitRows:
    """Rows with the same value in a column stay together; the shares count groups."""
    from sklearn.model_selection import train_test_split

    cells = texts(table.column(group))
    _require_values(table, group, "--group", rows[is_missing(cells[rows])])
    groups = cells[rows].astype(str)
    names = np.unique(groups)
    if len(names) < 3:
        raise InputError(
            f"{table.source}: column {group!r} has {len(names)} groups; three splits need 3"
        )
    rest, test = train_test_split(names, test_size=SHARE, random_state=seed)
    train, validation = train_test_split(
        np.sort(rest), test_size=SHARE / (1 - SHARE), random_state=seed
    )
    a, b, c = (rows[np.isin(groups, part)] for part in (train, validation, test))
    return a, b, c


def _ordered_by(table: Source, time: str, rows: np.ndarray) -> np.ndarray:
    """The rows, the earliest first."""
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
    return rows[np.argsort(values, kind="stable")]


def _groups_of(table: Source, rows: np.ndarray, options: TableOptions) -> np.ndarray | None:
    """What training rows belong to: the values of `group`, or each to a tenth of the time."""
    if options.group is not None:
        cells = texts(table.column(options.group))[rows].astype(str)
        names, numbers = np.unique(cells, return_inverse=True)
        return numbers if len(names) > 1 else None  # one alone cannot be left out
    if options.time is None:
        return None
    found = np.empty(len(table), int)
    found[_ordered_by(table, options.time, rows)] = np.arange(len(rows)) * TENTHS // len(rows)
    return found[rows]


def _require_values(table: Source, name: str, option: str, rows: np.ndarray) -> None:
    if len(rows):
        raise InputError(
            f"{table.source}: {option} needs a value in every row, but column {name!r} lacks "
            f"{len(rows):,} (first: {table.place(rows[0])}); fill them in"
        )
