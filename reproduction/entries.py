"""One number of ours beside the paper's, how far they are apart, and tables of such entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from reproduction.cells import ALL_DATASETS, DATASETS, EMBEDDING
from reproduction.published import ACCURACY, N_SEEDS, OFFICIAL, Number, reported_split
from reproduction.records import Key, Summary

ROUNDING = 0.005 / sqrt(3)
"""The standard deviation of what rounding to two digits takes away."""

SAME_ROWS = 0.05
"""What another solver or version changes on the same rows, in points: five of 10,000."""

SCATTERED = 10.0
"""Points of standard deviation beyond which the mean over seeds says nothing of any of them."""

DRAWN_ROWS = {"two-moons": 1500, "circles": 1500, "htru2": 2685, "mnist": 5000}
"""Held-out rows that the paper and we drew apart from each other; CIFAR-10's are the same."""

TITLES = {
    "two-moons": "Two Moons",
    "circles": "Circles",
    "htru2": "HTRU2",
    "mnist": "MNIST",
    EMBEDDING: "CIFAR-10 (our embedding)",
    "cifar10-r18": "CIFAR-10 (R18 emb.)",
}


@dataclass(frozen=True)
class Entry:
    """One cell of a table: ours, the paper's, and how far they are apart."""

    ours: Summary | None
    paper: Number | None = None
    comparable: bool = True
    n_rows: int | None = None
    is_dealt_anew: bool = False

    @property
    def z(self) -> float | None:
        """The difference in standard errors, of ours and the paper's together.

        Where both come from a split of their own into `n_rows` rows, no number of seeds averages
        that out: an accuracy of p per cent carries a variance of p(100 − p)/n_rows on each side.
        Where ours are dealt anew for each seed, it is averaged with the seeds. Where the rows are
        the same, implementations still differ.
        """
        if self.ours is None or self.paper is None or not self.comparable:
            return None
        mean, std = self.paper
        if std is None:
            return None
        spread = self.ours.std if self.ours.n_seeds > 1 else std  # one seed has none of its own
        ours = max(spread, ROUNDING) ** 2
        theirs = max(std, ROUNDING) ** 2 / N_SEEDS
        split = SAME_ROWS**2
        if self.n_rows is not None:
            our_rows, split = (p * (100 - p) / self.n_rows for p in (self.ours.mean, mean))
            if self.is_dealt_anew:  # the spread of few seeds may have missed it
                ours = max(ours, our_rows)
            else:
                split += our_rows
        return (self.ours.mean - mean) / sqrt(ours / self.ours.n_seeds + theirs + split)

    @property
    def is_far(self) -> bool | None:
        """Whether it is more than two standard errors from the paper's; None without a number.

        Seeds that scatter where the paper's do not are far from it, whatever their mean is.
        """
        if self.z is None or self.ours is None or self.paper is None:
            return None
        is_scattered = self.ours.std > SCATTERED > (self.paper[1] or 0.0)
        return abs(self.z) > 2 or is_scattered


class GramEntry(Entry):
    """A Gram error of batches; the paper gives no spread, so beyond a factor of two is far."""

    @property
    def is_far(self) -> bool | None:
        """Whether the larger of the two is more than twice the other."""
        if self.ours is None or self.paper is None or not self.comparable:
            return None
        return not 0.5 <= self.ours.mean / self.paper[0] <= 2


def gram_entry(dataset: str, ours: Summary | None, paper: Number | None) -> GramEntry:
    """A batch's Gram error beside the paper's."""
    return GramEntry(ours, paper, dataset != EMBEDDING)


def accuracy_entry(
    dataset: str,
    ours: Summary | None,
    paper: Number | None,
    split: str = "test",
    *,
    is_dealt_anew: bool = False,
) -> Entry:
    """An accuracy on the rows that a data set holds out, which are drawn unless they are fixed."""
    n_rows = None if split == OFFICIAL else DRAWN_ROWS.get(dataset)
    return Entry(ours, paper, dataset != EMBEDDING, n_rows, is_dealt_anew)


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
