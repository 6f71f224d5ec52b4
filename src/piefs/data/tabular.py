"""A user's own table as a data set: which column is the target, which rows are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from piefs.data.cells import is_missing, kind_of, parse, texts
from piefs.data.encoder import TableEncoder
from piefs.data.readers import read_table
from piefs.data.splits import (
    Dataset,
    Rows,
    Split,
    split_by_group,
    split_by_time,
    split_random,
    split_stratified,
)
from piefs.data.table import Table, listing
from piefs.errors import InputError

TASKS = ("auto", "classification", "regression", "unsupervised")
MIN_ROWS = 10
SHARE = 0.15  # of the rows, for validation and for test each
FEW_NUMBERS = 30  # so many distinct whole numbers, at most, are classes unless someone says
SLIPS = 0.1  # so large a share of words among numbers, at most, are slips and no classes


@dataclass(frozen=True)
class OwnData:
    """A data set, how its columns were encoded, its rows without a label, and what to tell.

    `task` is what is to be done with it: the one asked for, or what the target suggested.
    """

    dataset: Dataset
    encoder: TableEncoder
    unlabeled: np.ndarray | None
    task: str
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """A class index or a number for each row, and which rows have one; numbers have no names."""

    y: np.ndarray
    known: np.ndarray
    class_names: tuple[str, ...]


def load_own(
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
    """Read a file, cut its rows 70/15/15, and encode its columns as the training rows suggest.

    Rows are drawn at random, where there are classes with their shares kept, or `group` by group,
    or in the order of `time`, the latest for test. The target, the identifier, and what orders or
    groups rows is no feature. The task `auto` is regression where the target holds numbers with
    fractions or many distinct ones, else classification.
    """
    table = read_table(path)
    roles = {"--target": target, "--id": id_column, "--group": group, "--time": time}
    features = feature_columns(table, roles, drop, task)
    notices: list[str] = []
    task, truth = read_target(table, target, task, notices)
    parts = rows_of_splits(table, truth, group, time, split_seed, notices)
    check_training_rows(truth, parts[0], table, notices)
    encoder = TableEncoder.fit(features, missing, parts[0])
    x = encoder.transform(features)
    dataset = Dataset(
        Path(path).stem,
        *(Split(x[rows], truth.y[rows], table.take(rows)) for rows in parts),
        class_names=truth.class_names,
        feature_names=encoder.feature_names,
        description=f"{Path(path).name}: {len(table):,} rows, {len(encoder.used)} columns used",
        standardize=True,
        target_name=target or "y",
    )
    unlabeled = None if truth.known.all() else x[~truth.known]
    return OwnData(dataset, encoder, unlabeled, task, tuple(notices))


def feature_columns(
    table: Table, roles: dict[str, str | None], drop: Sequence[str], task: str
) -> Table:
    """The columns that may become features, once all that are named are known to be there."""
    if task not in TASKS:
        raise InputError(f"task {task!r} is unknown; choose one of {listing(TASKS)}")
    target = roles["--target"]
    if target is None and task != "unsupervised":
        raise InputError(
            f"say which column to predict with --target; columns are {listing(table.names)}"
        )
    if roles["--group"] is not None and roles["--time"] is not None:
        raise InputError("--group and --time both decide the splits; give one of them")
    named = [(option, name) for option, name in roles.items() if name is not None]
    named += [("--drop", name) for name in drop]
    for option, name in named:
        table.column(name)
        if name == target and option != "--target":
            raise InputError(f"column {name!r} cannot be both --target and {option}")
    gone = {name for _, name in named}
    if gone >= set(table.names):
        raise InputError(f"{table.source} has no usable feature: no column is left")
    return table.without(gone)


def read_target(
    table: Table, target: str | None, task: str, notices: list[str]
) -> tuple[str, Target]:
    """The task, decided where that was left open, and the target as it wants it."""
    n_rows = len(table)
    labels = np.full(n_rows, "all", object) if target is None else label_texts(table, target)
    known = labels != ""
    if np.sum(known) < MIN_ROWS:
        with_target = "" if target is None else f" with a value in {target!r}"
        raise InputError(
            f"{table.source} has too few rows{with_target}: {np.sum(known)}; add some, "
            f"{MIN_ROWS} at least"
        )
    if target is None:
        return task, Target(np.zeros(n_rows, np.int32), known, ("all",))
    suggested, why = suggest_task(table.column(target)[known])
    if task == "auto":
        task = suggested
        notices.append(
            f"the task is {task}, since column {target!r} holds {why}; "
            "--task classification|regression|unsupervised decides otherwise"
        )
    if not known.all():
        notices.append(_missing_target(table, target, known))
    if (suggested if task == "unsupervised" else task) == "regression":
        return task, Target(_numbers(table, target), known, ())
    class_names = _class_names(labels[known], target, table.source)
    index = {name: i for i, name in enumerate(class_names)}
    y = np.array([index.get(label, -1) for label in labels], dtype=np.int32)
    return task, Target(y, known, class_names)


def suggest_task(cells: np.ndarray) -> tuple[str, str]:
    """Whether the cells of a target are classes or numbers to predict, and what says so.

    Words are classes, unless they are few among many numbers: those are slips, to be told.
    """
    if kind_of(cells) == "boolean":
        return "classification", "yes or no"
    values, unreadable = parse(cells, "number")
    n_distinct = len(set(cells[unreadable])) + len(np.unique(values[~unreadable]))
    few = n_distinct <= min(FEW_NUMBERS, len(cells) / 2)
    if unreadable.any() and (few or unreadable.mean() > SLIPS):
        return "classification", "text"
    if np.any(values[~unreadable] % 1):
        return "regression", "numbers with fractions"
    counted = f"{n_distinct:,} distinct whole numbers in {len(cells):,} rows"
    return ("classification" if few else "regression"), counted


def label_texts(table: Table, target: str) -> np.ndarray:
    """The target's cells as class names, `1.0` and `01` as `1`; empty where missing."""
    cells = table.column(target)
    labels = texts(parse(cells, "number")[0] if kind_of(cells) == "number" else cells).copy()
    labels[is_missing(labels)] = ""
    return labels


def target_numbers(table: Table, target: str) -> np.ndarray:
    """The target's cells as numbers, NaN where missing; a word among them is an InputError."""
    cells = table.column(target)
    values, unreadable = parse(cells, "number")
    if unreadable.any():
        row = int(unreadable.argmax())
        raise InputError(
            f"{table.source}: regression needs numbers, but column {target!r} has "
            f"{str(cells[row])!r} in {table.place(row)}; correct the cell or leave it empty, "
            "or fit with --task classification"
        )
    return values


def _numbers(table: Table, target: str) -> np.ndarray:
    """Numbers to predict: they have to differ."""
    values = target_numbers(table, target)
    known = values[~np.isnan(values)]
    if known.min() == known.max():
        raise InputError(
            f"{table.source}: column {target!r} has only the value {known[0]:g}; there is nothing "
            "to predict: check --target"
        )
    return values


def _class_names(labels: np.ndarray, target: str, source: str) -> tuple[str, ...]:
    """The distinct labels in order, of numbers if they are numbers."""
    names = sorted(set(labels))
    counted = f"{len(names):,} distinct values in {len(labels):,} rows"
    if kind_of(labels) == "number":
        names.sort(key=float)
        values, _ = parse(labels, "number")
        many = len(names) > 100 and len(names) > 0.2 * len(labels)
        if many or np.any(values % 1):
            raise InputError(
                f"{source}: column {target!r} holds numbers to predict, not classes ({counted}); "
                "fit with --task regression, or give a column of classes"
            )
    if len(names) == 1:
        raise InputError(
            f"{source}: column {target!r} has only the value {names[0]!r}; "
            "a target needs two classes"
        )
    if len(names) > len(labels) / 2:
        raise InputError(
            f"{source}: column {target!r} has {counted}, too many to be classes; check --target"
        )
    return tuple(names)


def _missing_target(table: Table, target: str, known: np.ndarray) -> str:
    # A word such as none may have been meant as a class, so the words are shown.
    words = sorted(set(texts(table.column(target))[~known]))
    n_rows = int(np.sum(~known))
    shown = listing(map(repr, words))
    return f"{n_rows:,} rows have no value in {target!r} ({shown}) and are kept apart, unlabeled"


def rows_of_splits(
    table: Table,
    truth: Target,
    group: str | None,
    time: str | None,
    seed: int,
    notices: list[str],
) -> Rows:
    """The rows for training, for validation and for test, among those with a target."""
    labeled = np.flatnonzero(truth.known)
    if group is not None:
        return split_by_group(table, group, labeled, SHARE, seed)
    if time is not None:
        notices.append(f"column {time!r} orders the rows and is not a feature")
        return split_by_time(table, time, labeled, SHARE)
    if truth.class_names:
        return _shuffled(truth.y, labeled, truth.class_names, seed, notices)
    return split_random(labeled, SHARE, seed)


def _shuffled(
    y: np.ndarray, labeled: np.ndarray, class_names: Sequence[str], seed: int, notices: list[str]
) -> Rows:
    """Random rows with class shares kept, where there are enough rows for that."""
    counts = np.bincount(y[labeled])
    n_held_out = round(SHARE * len(labeled))
    if counts.min() >= 3 and n_held_out >= len(class_names):
        train, validation, test = split_stratified(labeled, y[labeled], (SHARE, SHARE), seed)
        return train.x, validation.x, test.x
    rarest = class_names[int(counts.argmin())]
    notices.append(
        f"the splits do not keep class shares: class {rarest!r} has {counts.min()} rows"
        if counts.min() < 3
        else f"the splits do not keep class shares: {n_held_out} rows cannot hold "
        f"{len(class_names)} classes"
    )
    return split_random(labeled, SHARE, seed)


def check_training_rows(truth: Target, rows: np.ndarray, table: Table, notices: list[str]) -> None:
    """The training rows have something to learn from: two classes, or two numbers."""
    y, class_names = truth.y[rows], truth.class_names
    if not class_names and y.min() == y.max():
        raise InputError(
            f"{table.source}: the training rows all have the target {y[0]:g}; give more rows or "
            "split otherwise"
        )
    absent = [name for i, name in enumerate(class_names) if i not in y]
    if absent and len(absent) >= len(class_names) - 1:
        raise InputError(
            f"{table.source}: the training rows are all of one class; give more rows or split "
            "otherwise"
        )
    if absent:
        shown = listing(map(repr, absent))
        notices.append(f"no training row is of class {shown}, so it is never predicted")
