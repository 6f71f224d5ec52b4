"""A table of entries, and what every kind of table is made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reproduction.cells import ALL_DATASETS, DATASETS
from reproduction.entries import TITLES, Entry, accuracy_entry
from reproduction.published import ACCURACY, reported_split
from reproduction.records import Key, Summary

Rows = tuple[tuple[str, tuple[Entry, ...]], ...]
"""Entries under a label each."""


@dataclass(frozen=True)
class Table:
    """Rows of entries under named columns."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: Rows
    digits: int = 2

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it has been measured."""
        return all(entry.ours is None for _, entries in self.rows for entry in entries)


def mode_of(method: str) -> str:
    """NeuralEF sees no labels."""
    return "unsupervised" if method == "neuralef" else "supervised"


def shown(found: dict[Key, Summary]) -> list[str]:
    """The data sets of the paper, its own CIFAR-10 embedding only where it was used."""
    used = {key[0] for key in found}
    return [dataset for dataset in ALL_DATASETS if dataset in DATASETS or dataset in used]


def by_dataset(
    found: dict[Key, Summary], columns: Sequence[tuple[str, str, str]], split: str
) -> Rows:
    """One row a data set, one column a (method, mode, variant)."""
    rows = []
    for dataset in shown(found):
        entries = []
        for method, mode, variant in columns:
            key = (dataset, method, mode, variant)
            paper = ACCURACY.get(key) if reported_split(dataset, method) == split else None
            entries.append(accuracy_entry(dataset, found.get(key), paper))
        rows.append((TITLES[dataset], tuple(entries)))
    return tuple(rows)
