"""How far the grid is, and how long it may still take.

Cells differ a thousandfold in what they cost, so that counting them would tell nothing: each is
weighed by the seconds it may take on one core, of which only the ratios matter once some are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lab.costs import step_flops
from piefs.training.config import PAPER
from reproduction.cells import LOW_DIMENSIONAL, Cell

N_FEATURES = {"two-moons": 2, "circles": 2, "htru2": 8, "mnist": 784}
EMBEDDED = 512
FLOPS_A_SECOND = 5e10
"""What a core does of the arithmetic of training, as far as it is counted."""

START = 1.0
"""Seconds that pass before a cell trains."""

ON_FEW_COLUMNS = {"neuralef": 18.0, "nca": 10.0}
ON_IMAGES = {"gradient-boosting": 500.0, "lda": 5.0, "pca-lr": 5.0, "nystroem-lr": 5.0}
"""Seconds of a baseline's fit where they are not those of most."""
MOST_ON_FEW_COLUMNS, MOST_ON_IMAGES = 2.0, 130.0

BEFOREHAND = 300.0
"""Seconds of work that the guess is trusted for before the cells that have ended outweigh it."""

UNFINISHED = 0.95
"""The most that a cell under way counts for, however long it has taken."""


def expected_seconds(cell: Cell, *, quick: bool = False) -> float:
    """What a cell may take on one core; of ours with the paper's settings within a factor of 3."""
    if cell.is_piefs:
        return START + _flops(cell, quick) / FLOPS_A_SECOND
    if quick:
        return START
    if cell.dataset in LOW_DIMENSIONAL:
        return START + ON_FEW_COLUMNS.get(cell.method, MOST_ON_FEW_COLUMNS)
    return START + ON_IMAGES.get(cell.method, MOST_ON_IMAGES)


def _flops(cell: Cell, quick: bool) -> float:
    settings = vars(PAPER) | cell.keywords(quick=quick)
    n_features = N_FEATURES.get(cell.dataset, EMBEDDED)
    metric = cell.method.removeprefix("piefs-")
    of_a_step = step_flops(n_features, settings["batch_size"], metric, merged=True)
    return of_a_step * settings["n_components"] * settings["steps_per_component"]


@dataclass
class Progress:
    """What a display needs to know."""

    expected: Mapping[Cell, float]
    done: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    running: dict[Cell, float] = field(default_factory=dict)
    """The cells that are worked on, and since when."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._taken, self._at_a_time = 0.0, 1

    def begin(self, cell: Cell) -> None:
        """The cell is worked on from now."""
        self.running[cell] = self.clock()
        self._at_a_time = max(self._at_a_time, len(self.running))

    def end(self, cell: Cell, why_failed: str | None = None) -> None:
        """The cell is done, or has failed."""
        self._taken += self.clock() - self.running[cell]
        if why_failed is None:
            self.done.append(cell)
        else:
            self.failed[cell] = why_failed
        del self.running[cell]

    @property
    def n_ended(self) -> int:
        """How many cells are done or have failed."""
        return len(self.done) + len(self.failed)

    @property
    def share(self) -> float:
        """Of the work, what has been done."""
        whole = sum(self.expected.values())
        return 1 - sum(self._left().values()) / whole if whole else 1.0

    @property
    def seconds_left(self) -> float:
        """At the pace so far, so many at a time, and not before the longest cell can be done."""
        left = self._left().values()
        return max(sum(left) / self._at_a_time, max(left, default=0.0)) / self._pace()

    def _pace(self) -> float:
        """Expected seconds that a second brings, by the cells that have ended."""
        ended = sum(self.expected[cell] for cell in (*self.done, *self.failed))
        return (ended + BEFOREHAND) / (self._taken + BEFOREHAND)

    def _left(self) -> dict[Cell, float]:
        """Expected seconds of each cell that has not ended, less what is under way."""
        ended, now, pace = {*self.done, *self.failed}, self.clock(), self._pace()
        left = {cell: seconds for cell, seconds in self.expected.items() if cell not in ended}
        for cell, since in list(self.running.items()):  # displays have a thread of their own
            if cell in left:
                left[cell] -= min((now - since) * pace, UNFINISHED * self.expected[cell])
        return left
