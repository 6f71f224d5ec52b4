"""What the runs left on disk: one folder a cell, with metrics.json and, for ours, history.csv."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from piefs.data import atomic
from piefs.data.documents import bounded_text, read_json, reading
from piefs.errors import InputError
from reproduction.cells import Cell
from reproduction.published import OFFICIAL

REMEDY = "remove the record, and piefs reproduce makes it again"


@dataclass(frozen=True)
class Record:
    """A finished cell."""

    cell: Cell
    folder: Path
    metrics: dict[str, Any]

    def history(self) -> list[dict[str, float]]:
        """The rows of history.csv; empty for a baseline."""
        path = self.folder / "history.csv"
        if not path.exists():
            return []
        with reading(path, REMEDY):
            rows = csv.DictReader(bounded_text(path).splitlines())
            return [{name: float(value) for name, value in row.items() if value} for row in rows]


class Records:
    """All records under a folder, `results/records` by default."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell) -> Path:
        """Where the record of a cell is, or will be."""
        return self.folder / str(cell)

    def has(self, cell: Cell) -> bool:
        """Whether the cell is done."""
        return (self.path(cell) / "metrics.json").exists()

    def write(self, cell: Cell, metrics: dict[str, Any], files: dict[str, bytes]) -> None:
        """Write the record of a cell; its metrics come last, and say that it is whole."""
        for name, content in files.items():
            atomic.write_bytes(self.path(cell) / name, content)
        atomic.write_json(self.path(cell) / "metrics.json", metrics)

    def load(self, cell: Cell) -> Record:
        """The record of a finished cell."""
        path = self.path(cell)
        return Record(cell, path, read_json(path / "metrics.json", REMEDY))

    def of(self, cells: Iterable[Cell]) -> list[Record]:
        """The records of those cells that are done."""
        return [self.load(cell) for cell in cells if self.has(cell)]

    def __iter__(self) -> Iterator[Record]:
        for path in sorted(self.folder.glob("*/*/*/*/*/metrics.json")):
            yield self.load(Cell.parse(str(path.parent.relative_to(self.folder))))


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over seeds; the latter is 0 for a single one."""

    mean: float
    std: float
    n_seeds: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """Of at least one value."""
        values = list(values)
        return cls(mean(values), stdev(values) if len(values) > 1 else 0.0, len(values))


Key = tuple[str, str, str, str]


def _on_split(found: dict[str, Any], split: str, cell: Cell) -> Any:
    """The value on a split; MNIST's official test images are its two halves of equal size."""
    if split != OFFICIAL:
        return found.get(split)
    halves = [found[half] for half in ("validation", "test") if isinstance(found.get(half), float)]
    return mean(halves) if cell.dataset == "mnist" and len(halves) == 2 else None


def summaries(
    records: Iterable[Record], metric: str = "accuracy", split: str = "test", scale: float = 100.0
) -> dict[Key, Summary]:
    """(dataset, method, mode, variant) → a metric on a split over the seeds that are there."""
    values: dict[Key, list[float]] = defaultdict(list)
    for record in records:
        cell, found = record.cell, record.metrics.get(metric)
        value = _on_split(found, split, cell) if isinstance(found, dict) else found
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{record.folder}: {metric} is no number; {REMEDY}")
            values[cell.dataset, cell.method, cell.mode, cell.variant].append(scale * value)
    return {key: Summary.of(found) for key, found in values.items()}
