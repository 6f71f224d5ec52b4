"""How far the grid is, and how long it may still take.

Cells differ a thousandfold in what they cost, so that counting them would tell nothing: each is
weighed by the seconds it may take on one core, of which only the ratios matter once some are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from piefs.costs import step_flops
from piefs.paper.cells import LOW_DIMENSIONAL, Cell
from piefs.presets import PAPER

N_FEATURES = {"two-moons": 2, "circles": 2, "htru2": 8, "mnist": 784}
EMBEDDED = 512
FLOPS_A_SECOND = 5e10
"""What a core does of the arithmetic of training, as far as it is counted."""

START, SMALL_BASELINE, LARGE_BASELINE = 1.0, 5.0, 150.0
"""Seconds: of any cell before it trains, and of a baseline's fit to few columns or to images."""

BEFOREHAND = 300.0
"""Seconds of work that the guess is trusted for before the cells that are done outweigh it."""


def expected_seconds(cell: Cell, *, quick: bool = False) -> float:
    """What a cell may take on one core; right within a factor of two or so."""
    if not cell.is_piefs:
        large = cell.dataset not in LOW_DIMENSIONAL and not quick
        return START + (LARGE_BASELINE if large else 0.0 if quick else SMALL_BASELINE)
    settings = {**PAPER, **cell.keywords(quick=quick)}
    metric = cell.method.removeprefix("piefs-")
    flops = step_flops(
        N_FEATURES.get(cell.dataset, EMBEDDED), settings["batch_size"], metric, merged=True
    )
    n_steps = settings["n_components"] * settings["steps_per_component"]
    return START + n_steps * flops / FLOPS_A_SECOND


@dataclass
class Progress:
    """What a display needs to know."""

    expected: Mapping[Cell, float]
    done: list[Cell] = field(default_factory=list)
    running: dict[Cell, float] = field(default_factory=dict)
    """The cells that are worked on, and since when."""
    failed: dict[Cell, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def n_ended(self) -> int:
        """How many cells are done or have failed."""
        return len(self.done) + len(self.failed)

    @property
    def share(self) -> float:
        """Of the work, what has been done."""
        return self._worked() / max(sum(self.expected.values()), START)

    @property
    def seconds_left(self) -> float:
        """By the cells so far, and by what is expected of cells while they are few."""
        worked, elapsed = self._worked(), self.clock() - self.started
        left = sum(self.expected.values()) - worked
        at_a_time = max(len(self.running), 1)
        return left * (elapsed + BEFOREHAND / at_a_time) / (worked + BEFOREHAND)

    def _worked(self) -> float:
        """Expected seconds of what has ended, and of what is under way up to now."""
        now = self.clock()
        ended = sum(self.expected[cell] for cell in [*self.done, *self.failed])
        running = list(self.running.items())  # a display reads this from a thread of its own
        return ended + sum(min(now - since, self.expected[cell]) for cell, since in running)
