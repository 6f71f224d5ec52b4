"""A user's own table as a data set: which column is the target, which rows are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from piefs.datasets.splits import Dataset, Split, split_stratified
from piefs.errors import InputError
from piefs.io.encoding import TableEncoder, is_missing, kind_of, parse, texts
from piefs.io.tables import Table, listing, read_table

TASKS = ("classification", "unsupervised")
MIN_ROWS = 10
SHARE = 0.15  # of the rows, for validation and for test each
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class OwnData:
    """A data set, how its columns were encoded, its rows without a label, and what to tell."""

    dataset: Dataset
    encoder: TableEncoder
    unlabeled: np.ndarray | None
    notices: tuple[str, ...]


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
    task: str = "classification",
) -> OwnData:
    """Read a file, cut its rows 70/15/15, and encode its columns as the training rows suggest.

    Rows are drawn at random with class shares kept, or `group` by group, or in the order of `time`,
    the latest for test. The target, the identifier, and what orders or groups rows is no feature.
    """
    table = read_table(path)
    roles = {"--target": target, "--id": id_column, "--group": group, "--time": time}
    features = _features(table, roles, drop, task)
    labels = np.full(len(table), "all", object) if target is None else label_texts(table, target)
    labeled = np.flatnonzero(labels != "")
    if len(labeled) < MIN_ROWS:
        with_target = "" if target is None else f" with a value in {target!r}"
        raise InputError(
            f"{path} has too few rows{with_target}: {len(labeled)}; add some, {MIN_ROWS} at least"
        )
    class_names = ("all",) if target is None else _class_names(labels[labeled], target, path)
    index = {name: i for i, name in enumerate(class_names)}
    y = np.array([index.get(label, -1) for label in labels], dtype=np.int32)
    notices = _missing_target(table, target, labels)
    if group is not None:
        parts = _grouped(table, group, labeled, split_seed)
    elif time is not None:
        parts = _ordered(table, time, labeled)
        notices.append(f"column {time!r} orders the rows and is not a feature")
    else:
        parts = _shuffled(y, labeled, class_names, split_seed, notices)
    _check_training_classes(y[parts[0]], class_names, path, notices)
    encoder = TableEncoder.fit(features, missing, parts[0])
    x = encoder.transform(features)
    dataset = Dataset(
        Path(path).stem,
        *(Split(x[rows], y[rows]) for rows in parts),
        class_names=class_names,
        feature_names=encoder.feature_names,
        description=f"{Path(path).name}: {len(table):,} rows, {len(encoder.used)} columns used",
        standardize=True,
    )
    unlabeled = x[labels == ""] if len(labeled) < len(table) else None
    return OwnData(dataset, encoder, unlabeled, tuple(notices))


def _features(table: Table, roles: dict[str, str | None], drop: Sequence[str], task: str) -> Table:
    """The columns that may become features, once all that are named are known to be there."""
    if task not in TASKS:
        raise InputError(f"task {task!r} is unknown; choose one of {listing(TASKS)}")
    target = roles["--target"]
    if target is None and task == "classification":
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


def label_texts(table: Table, target: str) -> np.ndarray:
    """The target's cells as class names, `1.0` and `01` as `1`; empty where missing."""
    cells = table.column(target)
    labels = texts(parse(cells, "number")[0] if kind_of(cells) == "number" else cells).copy()
    labels[is_missing(labels)] = ""
    return labels


def _class_names(labels: np.ndarray, target: str, path: Path) -> tuple[str, ...]:
    """The distinct labels in order, of numbers if they are numbers."""
    names = sorted(set(labels))
    counted = f"{len(names):,} distinct values in {len(labels):,} rows"
    if kind_of(labels) == "number":
        names.sort(key=float)
        values, _ = parse(labels, "number")
        many = len(names) > 100 and len(names) > 0.2 * len(labels)
        if many or np.any(values != np.trunc(values)):
            raise InputError(
                f"{path}: column {target!r} looks like a number to predict (regression), it has "
                f"{counted}; only classification is supported: give a column of classes"
            )
    if len(names) == 1:
        raise InputError(
            f"{path}: column {target!r} has only the value {names[0]!r}; a target needs two classes"
        )
    if len(names) > len(labels) / 2:
        raise InputError(
            f"{path}: column {target!r} has {counted}, too many to be classes; check --target"
        )
    return tuple(names)


def _missing_target(table: Table, target: str | None, labels: np.ndarray) -> list[str]:
    if target is None or np.all(labels != ""):
        return []
    # A word such as none may have been meant as a class, so the words are shown.
    words = sorted(set(texts(table.column(target))[labels == ""]))
    n_rows = int(np.sum(labels == ""))
    shown = listing(map(repr, words))
    return [f"{n_rows:,} rows have no value in {target!r} ({shown}) and are kept apart, unlabeled"]


def _grouped(table: Table, group: str, labeled: np.ndarray, seed: int) -> Rows:
    """Rows of a group stay together; the shares are those of groups."""
    cells = texts(table.column(group))
    _require_values(table, group, "--group", labeled[is_missing(cells[labeled])])
    groups = cells[labeled].astype(str)
    if len(set(groups)) < 3:
        raise InputError(
            f"{table.source}: column {group!r} has {len(set(groups))} groups; three splits need 3"
        )
    rest, test = _group_shuffle(groups, SHARE, seed)
    train, validation = _group_shuffle(groups[rest], SHARE / (1 - SHARE), seed)
    return labeled[rest[train]], labeled[rest[validation]], labeled[test]


def _group_shuffle(groups: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    splitter = GroupShuffleSplit(n_splits=1, test_size=share, random_state=seed)
    return next(splitter.split(groups, groups=groups))


def _ordered(table: Table, time: str, labeled: np.ndarray) -> Rows:
    """The latest rows for test, those before them for validation."""
    cells = table.column(time)[labeled]
    kind = kind_of(cells)
    if kind not in ("number", "date"):
        row = labeled[parse(cells, "date")[1].argmax()]
        raise InputError(
            f"{table.source}: --time needs numbers, or dates such as 2024-01-31, but column "
            f"{time!r} has {str(table.columns[time][row])!r} in {table.place(row)}"
        )
    values, _ = parse(cells, kind)
    _require_values(table, time, "--time", labeled[np.isnan(values)])
    order = labeled[np.argsort(values, kind="stable")]
    n_held_out = round(SHARE * len(order))
    return order[: -2 * n_held_out], order[-2 * n_held_out : -n_held_out], order[-n_held_out:]


def _require_values(table: Table, name: str, option: str, rows: np.ndarray) -> None:
    if len(rows):
        raise InputError(
            f"{table.source}: {option} needs a value in every row, but column {name!r} lacks "
            f"{len(rows):,} (first: {table.place(rows[0])}); fill them in"
        )


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
    order = np.random.default_rng(seed).permutation(labeled)
    return order[2 * n_held_out :], order[:n_held_out], order[n_held_out : 2 * n_held_out]


def _check_training_classes(
    y: np.ndarray, class_names: Sequence[str], path: Path, notices: list[str]
) -> None:
    absent = [name for i, name in enumerate(class_names) if i not in y]
    if absent and len(absent) >= len(class_names) - 1:
        raise InputError(
            f"{path}: the training rows are all of one class; give more rows or split otherwise"
        )
    if absent:
        shown = listing(map(repr, absent))
        notices.append(f"no training row is of class {shown}, so it is never predicted")
