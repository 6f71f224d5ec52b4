"""Callbacks that ask for a run to end: on a score, on a plateau, on time."""

from __future__ import annotations

import time

from piefs.errors import InputError
from piefs.training.callbacks.stages import NewRows, Stage
from piefs.training.state import TrainState

HIGHER_IS_BETTER = ("validation_accuracy", "validation_r2")
"""Columns of the history that should rise; all others should fall."""


class EarlyStopping:
    """End a run when a column of the history has stopped to improve.

    Parameters
    ----------
    monitor
        The column, such as "validation_loss" (which needs validation rows) or "loss_class".
    patience
        How many rows in a row may bring no improvement.
    min_improvement
        What counts as one, as a share of the best value so far.
    """

    def __init__(
        self, monitor: str = "validation_loss", patience: int = 10, min_improvement: float = 1e-3
    ) -> None:
        if patience < 1:
            raise InputError(f"patience must be a number of rows of at least 1, not {patience}")
        if min_improvement < 0:
            raise InputError(f"min_improvement must be at least 0, not {min_improvement}")
        self.monitor, self.patience, self.min_improvement = monitor, patience, min_improvement
        self._start()

    def _start(self) -> None:
        self._new_rows, self._n_worse = NewRows(), 0
        self._best: float | None = None

    def begin(self, stage: Stage) -> None:
        """Each stage is watched on its own."""
        self._start()

    def __call__(self, state: TrainState) -> bool:
        """Whether patience has run out."""
        for row in self._new_rows(state):
            value = value_of(row, self.monitor)
            self._see(-value if self.monitor in HIGHER_IS_BETTER else value)
        return self._n_worse >= self.patience

    def _see(self, value: float) -> None:
        best = self._best
        if best is None or value < best - self.min_improvement * abs(best):
            self._best, self._n_worse = value, 0
        else:
            self._n_worse += 1


class TargetScore:
    """End a run when a column of the history has reached a value.

    Parameters
    ----------
    target
        The value: a score to rise to, or a loss to fall to.
    monitor
        The column, "validation_accuracy" unless given.
    """

    def __init__(self, target: float, monitor: str = "validation_accuracy") -> None:
        self.target, self.monitor = target, monitor
        self._new_rows = NewRows()

    def begin(self, stage: Stage) -> None:
        """Each stage is watched on its own."""
        self._new_rows = NewRows()

    def __call__(self, state: TrainState) -> bool:
        """Whether a new row is there."""
        values = [value_of(row, self.monitor) for row in self._new_rows(state)]
        if self.monitor in HIGHER_IS_BETTER:
            return any(value >= self.target for value in values)
        return any(value <= self.target for value in values)


def value_of(row: dict[str, float], name: str) -> float:
    """A column of a history row; an InputError names those there are."""
    if name not in row:
        hint = (
            ' (those of validation rows need validation_data, and schedule="spectral" has none)'
            if name.startswith("valid")
            else ""
        )
        raise InputError(
            f"the history has no column {name!r} to watch{hint}; it has {', '.join(row)}"
        )
    return row[name]


class TimeBudget:
    """End a fit after so many seconds, warm start, compilation and trials included.

    Stages that are still to come get equal shares of what is left, so that trials leave time for
    the model itself. It ends after the chunk of steps in which its time runs out.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise InputError(f"a time budget must be a number of seconds above 0, not {seconds!r}")
        self.seconds = seconds
        self._end = self._stage_end = None

    def prepare(self, what: str, done: int, total: int) -> None:
        """The time runs from the first work on."""
        self._end = self._end or time.monotonic() + self.seconds

    def begin(self, stage: Stage) -> None:
        """Give the stage its share of what is left."""
        now = time.monotonic()
        self._end = self._end or now + self.seconds
        self._stage_end = now + (self._end - now) / stage.n_left

    def __call__(self, state: TrainState) -> bool:
        """Whether the time is up."""
        now = time.monotonic()
        if self._stage_end is None:
            self._stage_end = now + self.seconds
        return now >= self._stage_end

    def end(self) -> None:
        """The next fit has all the time again."""
        self._end = self._stage_end = None
