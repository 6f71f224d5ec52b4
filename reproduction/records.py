"""The records of the paper's grid, one study a data set, and what they come to over seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from piefs.data.files import write_bytes
from piefs.errors import InputError
from reproduction.cells import Cell
from reproduction.published import OFFICIAL
from reproduction.study import Rows, Study


def remedy(cell: Cell) -> str:
    """What to do about a damaged record."""
    return f"remove the line of {cell}, and piefs reproduce makes it again"


@dataclass(frozen=True)
class Record:
    """A finished cell."""

    cell: Cell
    metrics: dict[str, Any]
    study: Study

    def history(self) -> Rows:
        """What was recorded while it was trained; empty for a baseline."""
        return self.study.history(str(self.cell))


class Records:
    """All records under a folder, `results/records` by default."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._studies: dict[str, Study] = {}

    def study(self, dataset: str) -> Study:
        """The records on a data set."""
        return self._studies.setdefault(dataset, Study(self.folder / dataset))

    def has(self, cell: Cell) -> bool:
        """Whether the cell is done."""
        return str(cell) in self.study(cell.dataset)

    def plane(self, cell: Cell) -> Path:
        """The maps of a cell over the plane, for the runs that the paper draws them of."""
        return self.folder / "planes" / f"{str(cell).replace('/', '.')}.npz"

    def write(
        self,
        cell: Cell,
        metrics: Mapping[str, Any],
        history: Sequence[Mapping[str, float]] = (),
        plane: bytes | None = None,
    ) -> None:
        """Write the record of a cell; its metrics come last, and say that it is whole."""
        if plane is not None:
            write_bytes(self.plane(cell), plane)
        self.study(cell.dataset).add(str(cell), metrics, history)

    def load(self, cell: Cell) -> Record:
        """The record of a finished cell."""
        study = self.study(cell.dataset)
        return Record(cell, study[str(cell)], study)

    def of(self, cells: Iterable[Cell]) -> list[Record]:
        """The records of those cells that are done."""
        return [self.load(cell) for cell in cells if self.has(cell)]

    def __iter__(self) -> Iterator[Record]:
        for path in sorted(self.folder.glob("[!.]*.jsonl")):
            study = self.study(path.stem)
            for name in study:
                yield Record(Cell.parse(name), study[name], study)


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
                raise InputError(f"{record.study.file}: {metric} is no number; {remedy(cell)}")
            values[cell.dataset, cell.method, cell.mode, cell.variant].append(scale * value)
    return {key: Summary.of(found) for key, found in values.items()}
