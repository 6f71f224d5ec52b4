"""The records as the paper's claims ask for them, and what is made of findings on several sets.

A finding is what was measured and a verdict, which is None while runs that it needs are missing and
where what the claim presupposes is not the case. A claim about several data sets fails on any of
them, and holds when it does on all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt

from reproduction.cells import DETERMINISTIC, PIEFS, Cell
from reproduction.entries import DRAWN_ROWS, TITLES
from reproduction.records import Key, Records, Summary, summaries

Finding = tuple[str, bool | None]
History = list[dict[str, float]]
NOT_RUN: Finding = ("not run yet", None)
ENOUGH_SEEDS = 3
FEW_SEEDS_STD = 0.5
"""Points that seeds are taken to be apart, at least, where fewer than enough have been run."""


class Found:
    """The records, as the checks want them."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.every = list(records)
        self.test = summaries(self.every)
        self.train = summaries(self.every, split="train")
        self.gram = summaries(self.every, "gram_error_batch", "", 1.0)

    def accuracy(self, dataset: str, method: str, mode: str = "supervised") -> Summary | None:
        """Test accuracy in per cent with the settings of the paper."""
        return self.test.get((dataset, method, mode, "paper"))

    def of_metrics(self, dataset: str, mode: str, variant: str = "paper") -> list[float]:
        """Test accuracies with `off`, `diag` and `trotter`, if all are there."""
        keys: list[Key] = [(dataset, method, mode, variant) for method in PIEFS]
        return [self.test[k].mean for k in keys] if all(k in self.test for k in keys) else []

    def of_variants(
        self, dataset: str, *variants: str, found: dict[Key, Summary] | None = None
    ) -> list[float]:
        """What `off` has with these variants, with labels, if all are there."""
        found = self.test if found is None else found
        keys: list[Key] = [(dataset, "piefs-off", "supervised", v) for v in variants]
        return [found[k].mean for k in keys] if all(k in found for k in keys) else []

    def runs(self, dataset: str) -> list[History]:
        """What was recorded while `off` was trained, seed by seed."""
        cells = [Cell(dataset, "piefs-off", "supervised", "paper", seed) for seed in range(5)]
        return [h for r in self.records.of(cells) if (h := r.history())]

    def energies(
        self, dataset: str, method: str = "piefs-off", mode: str = "supervised"
    ) -> list[list[float]]:
        """The energies of the maps, seed by seed."""
        cells = [Cell(dataset, method, mode, "paper", seed) for seed in range(5)]
        return [record.metrics["energies"] for record in self.records.of(cells)]


Check = Callable[[Found], Finding]
Of = Callable[[Found, str], Finding | None]


def on(datasets: Iterable[str], of: Of, before: str = "") -> Check:
    """One finding of those on several data sets."""
    datasets = tuple(datasets)

    def check(found: Found) -> Finding:
        parts = {dataset: of(found, dataset) for dataset in datasets}
        measured = [(TITLES[dataset], *part) for dataset, part in parts.items() if part]
        if not measured:
            return NOT_RUN
        text = before + ", ".join(f"{title} {words}" for title, words, _ in measured)
        if len(measured) < len(parts):
            text += f" (so far {len(measured)} of {len(parts)} sets)"
        verdicts = {holds for _, _, holds in measured}
        if False in verdicts:
            return text, False
        return text, True if verdicts == {True} and len(measured) == len(parts) else None

    return check


def error_of_gap(dataset: str, compared: dict[str, Summary]) -> float:
    """The standard error, in points, of the difference of two methods' accuracies on a data set.

    It is that of both means over seeds, and of the draw of the test rows, which both share.
    """
    of_seeds = sum(_variance(found, method) for method, found in compared.items())
    return sqrt(of_seeds + max(_variance_of_rows(found, dataset) for found in compared.values()))


def _variance(found: Summary, method: str) -> float:
    """Of the mean over seeds; few of them say little about how far seeds are apart."""
    if method in DETERMINISTIC:
        return 0.0
    std = found.std if found.n_seeds >= ENOUGH_SEEDS else max(found.std, FEW_SEEDS_STD)
    return std**2 / found.n_seeds


def _variance_of_rows(found: Summary, dataset: str) -> float:
    n_rows = DRAWN_ROWS.get(dataset)
    return 0.0 if n_rows is None else found.mean * (100 - found.mean) / n_rows


def known(text: str) -> Check:
    """A claim that is an identity, for which no run is needed."""
    return lambda found: (text, True)
