"""The column to predict: classes or numbers, and which rows have a value."""

from dataclasses import dataclass

import numpy as np

from piefs.data.streamed import Source
from piefs.data.table import coded, is_missing, kind_of, listing, parse, texts
from piefs.errors import InputError

MIN_ROWS = 10
FEW_NUMBERS = 30  # at most so many distinct whole numbers are classes, unless the user says more
SLIPS = 0.1  # at most such a share of words among numbers are slips, not classes


SplitRows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The numbers of the rows for training, for validation and for test."""


@dataclass(frozen=True)
class Target:
    """A class index or a number for each row, and which rows have one; numbers have no names."""

    y: np.ndarray
    known: np.ndarray
    class_names: tuple[str, ...]


def read_target(
    table: Source, target: str | None, task: str, notices: list[str]
) -> tuple[str, Target]:
    """The task, decided by the target's values if it is `auto`, and the target encoded for it."""
    # Only distinct cells are looked at, since the rows may be very many.
    distinct, codes = coded(np.zeros(len(table)) if target is None else table.column(target))
    numbers, unreadable = parse(distinct, "number")
    is_gap = is_missing(distinct) if unreadable.any() else np.isnan(numbers)
    known = ~is_gap[codes]
    if np.sum(known) < MIN_ROWS:
        with_target = "" if target is None else f" with a value in {target!r}"
        raise InputError(
            f"{table.source} has too few rows{with_target}: {np.sum(known)}; {MIN_ROWS} are needed"
        )
    if target is None:
        return task, Target(np.zeros(len(table), np.int32), known, ("all",))
    suggested, why = _suggested_task(distinct[~is_gap], np.bincount(codes)[~is_gap])
    if task == "auto":
        task = suggested
        notices.append(
            f"the task is {task}, since column {target!r} holds {why}; "
            "--task classification|regression|unsupervised decides otherwise"
        )
    if is_gap.any():  # a word such as none may have been meant as a class: show the words
        words = listing(map(repr, sorted(texts(distinct[is_gap]))))
        notices.append(
            f"{np.sum(~known):,} rows have no value in {target!r} ({words}) and are kept apart, "
            "unlabeled"
        )
    about = f"{table.source}: column {target!r}"
    if (suggested if task == "unsupervised" else task) == "regression":
        y = target_numbers(table, target)
        if np.nanmin(y) == np.nanmax(y):
            raise InputError(f"{about} has only the value {np.nanmin(y):g}; check --target")
        return task, Target(y, known, ())
    labels = label_texts(distinct)
    names = _class_names(sorted({*labels} - {""}), int(np.sum(known)), about)
    places = {name: i for i, name in enumerate(names)}
    y = np.array([places.get(label, -1) for label in labels], np.int32)[codes]
    return task, Target(y, known, names)


def _suggested_task(cells: np.ndarray, counts: np.ndarray) -> tuple[str, str]:
    """Whether the distinct cells of a target are classes or numbers, and why.

    Words are classes, unless they are few among many numbers: those are slips, and an error later.
    """
    if kind_of(cells) == "boolean":
        return "classification", "yes or no"
    values, unreadable = parse(cells, "number")
    n, n_distinct = counts.sum(), unreadable.sum() + len(np.unique(values[~unreadable]))
    few = n_distinct <= min(FEW_NUMBERS, n / 2)
    if unreadable.any() and (few or counts[unreadable].sum() > SLIPS * n):
        return "classification", "text"
    if np.any(values[~unreadable] % 1):
        return "regression", "numbers with fractions"
    counted = f"{n_distinct:,} distinct whole numbers in {n:,} rows"
    return ("classification" if few else "regression"), counted


def label_texts(cells: np.ndarray) -> np.ndarray:
    """A target's cells as class names, `1.0` and `01` as `1`; empty if missing."""
    labels = texts(parse(cells, "number")[0] if kind_of(cells) == "number" else cells)
    return np.where(is_missing(labels), "", labels)


def target_numbers(table: Source, target: str) -> np.ndarray:
    """The target's cells as numbers, NaN if missing; a word among them is an InputError."""
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


def _class_names(names: list[str], n_rows: int, about: str) -> tuple[str, ...]:
    """The distinct labels in order, by value if all are numbers."""
    counted = f"{len(names):,} distinct values in {n_rows:,} rows"
    labels = np.array(names, object)
    if kind_of(labels) == "number":
        names.sort(key=float)
        many = len(names) > 100 and len(names) > 0.2 * n_rows
        if many or np.any(parse(labels, "number")[0] % 1):
            raise InputError(
                f"{about} holds numbers to predict, not classes ({counted}); "
                "fit with --task regression, or give a column of classes"
            )
    if len(names) == 1:
        raise InputError(f"{about} has only the value {names[0]!r}; a target needs two classes")
    if len(names) > n_rows / 2:
        raise InputError(f"{about} has {counted}, too many to be classes; check --target")
    return tuple(names)


def learnable(
    target: Target, parts: SplitRows, source: str, notices: list[str]
) -> tuple[Target, SplitRows]:
    """The target and the rows of each split without the classes that no training row has."""
    found = np.unique(target.y[parts[0]])
    if len(found) == 1 and target.class_names != ("all",):
        raise InputError(
            f"{source}: the training rows all have the same target; give more rows or split "
            "otherwise"
        )
    is_here = np.isin(np.arange(len(target.class_names)), found)
    if is_here.all():
        return target, parts
    train, validation, test = (rows[is_here[target.y[rows]]] for rows in parts)
    absent = [name for name, here in zip(target.class_names, is_here, strict=True) if not here]
    n = len(parts[1]) + len(parts[2]) - len(validation) - len(test)
    if not len(validation) or not len(test):
        raise InputError(f"{source}: all held-out rows are of class {absent[0]!r}; split otherwise")
    notices.append(
        f"no training row is of class {listing(map(repr, absent))}: it cannot be learned, and its "
        f"{n:,} held-out rows do not count"
    )
    y = np.where(target.y < 0, -1, (np.cumsum(is_here) - 1)[target.y]).astype(target.y.dtype)
    names = tuple(name for name in target.class_names if name not in absent)
    return Target(y, target.known, names), (train, validation, test)
