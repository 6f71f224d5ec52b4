"""The column to predict: classes or numbers, and which rows have a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from piefs.data.table import Table, is_missing, kind_of, listing, parse, texts
from piefs.errors import InputError

MIN_ROWS = 10
FEW_NUMBERS = 30  # at most so many distinct whole numbers are classes, unless the user says more
SLIPS = 0.1  # at most such a share of words among numbers are slips, not classes


@dataclass(frozen=True)
class Target:
    """A class index or a number for each row, and which rows have one; numbers have no names."""

    y: np.ndarray
    known: np.ndarray
    class_names: tuple[str, ...]

    @classmethod
    def of_labels(cls, labels: np.ndarray, class_names: tuple[str, ...]) -> Target:
        """The classes of labels; others have no class."""
        index = {name: i for i, name in enumerate(class_names)}
        y = np.array([index.get(label, -1) for label in labels], np.int32)
        return cls(y, y >= 0, class_names)


def read_target(
    table: Table, target: str | None, task: str, notices: list[str]
) -> tuple[str, Target]:
    """The task, decided by the target's values if it is `auto`, and the target encoded for it."""
    labels = np.full(len(table), "all", object) if target is None else label_texts(table, target)
    known = labels != ""
    if np.sum(known) < MIN_ROWS:
        with_target = "" if target is None else f" with a value in {target!r}"
        raise InputError(
            f"{table.source} has too few rows{with_target}: {np.sum(known)}; {MIN_ROWS} are needed"
        )
    if target is None:
        return task, Target.of_labels(labels, ("all",))
    suggested, why = _suggested_task(table.column(target)[known])
    if task == "auto":
        task = suggested
        notices.append(
            f"the task is {task}, since column {target!r} holds {why}; "
            "--task classification|regression|unsupervised decides otherwise"
        )
    if not known.all():  # a word such as none may have been meant as a class: show the words
        words = listing(map(repr, sorted(set(texts(table.column(target))[~known]))))
        notices.append(
            f"{np.sum(~known):,} rows have no value in {target!r} ({words}) and are kept apart, "
            "unlabeled"
        )
    about = f"{table.source}: column {target!r}"
    if (suggested if task == "unsupervised" else task) == "regression":
        numbers = target_numbers(table, target)
        if np.nanmin(numbers) == np.nanmax(numbers):
            raise InputError(f"{about} has only the value {np.nanmin(numbers):g}; check --target")
        return task, Target(numbers, known, ())
    return task, Target.of_labels(labels, _class_names(labels[known], about))


def _suggested_task(cells: np.ndarray) -> tuple[str, str]:
    """Whether the cells of a target are classes or numbers, and why.

    Words are classes, unless they are few among many numbers: those are slips, and an error later.
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
    """The target's cells as class names, `1.0` and `01` as `1`; empty if missing."""
    cells = table.column(target)
    labels = texts(parse(cells, "number")[0] if kind_of(cells) == "number" else cells).copy()
    labels[is_missing(labels)] = ""
    return labels


def target_numbers(table: Table, target: str) -> np.ndarray:
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


def _class_names(labels: np.ndarray, about: str) -> tuple[str, ...]:
    """The distinct labels in order, by value if all are numbers."""
    names = sorted(set(labels))
    counted = f"{len(names):,} distinct values in {len(labels):,} rows"
    if kind_of(labels) == "number":
        names.sort(key=float)
        many = len(names) > 100 and len(names) > 0.2 * len(labels)
        if many or np.any(parse(labels, "number")[0] % 1):
            raise InputError(
                f"{about} holds numbers to predict, not classes ({counted}); "
                "fit with --task regression, or give a column of classes"
            )
    if len(names) == 1:
        raise InputError(f"{about} has only the value {names[0]!r}; a target needs two classes")
    if len(names) > len(labels) / 2:
        raise InputError(f"{about} has {counted}, too many to be classes; check --target")
    return tuple(names)


def check_training_target(
    target: Target, rows: np.ndarray, source: str, notices: list[str]
) -> None:
    """The training rows have two classes, or two numbers, to learn from."""
    found = np.unique(target.y[rows])
    if len(found) == 1 and target.class_names != ("all",):
        raise InputError(
            f"{source}: the training rows all have the same target; give more rows or split "
            "otherwise"
        )
    if absent := [name for i, name in enumerate(target.class_names) if i not in found]:
        shown = listing(map(repr, absent))
        notices.append(f"no training row is of class {shown}, so it is never predicted")
