"""Callbacks: what is called between chunks of steps, and may ask for the run to end.

A callback is a callable. It sees the `TrainState` after every chunk of steps and every frozen map;
if it returns True, the run ends and the model is finished as it stands. Three methods are optional:
`prepare(what, done, total)` reports work before training (a graph of the rows, maps fitted to it),
`begin(stage)` that training begins (a `Stage` has its settings), and `end()` that the fit is over,
whether it succeeded or failed.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piefs.data.files import write_bytes
from piefs.errors import InputError
from piefs.training.config import Settings

if TYPE_CHECKING:
    from piefs.training.state import TrainState

Callback = Callable[["TrainState"], object]
"""Sees the state between chunks; what returns True asks for the run to end."""


@dataclass(frozen=True)
class Stage:
    """The training of a fit, which follows what is prepared."""

    settings: Settings

    def steps_done(self, state: TrainState) -> int:
        """Steps behind the state; a turn that ended early counts whole."""
        return len(state.steps) * self.settings.steps_per_component + state.step

    def describe(self, state: TrainState) -> str:
        """Which maps descend, or were frozen last."""
        n = self.settings.n_components
        if self.settings.solver != "sequential":
            return f"all {n} maps" if n > 1 else "1 map"
        return f"map {min(state.k + (not state.is_between_turns), n)} of {n}"


def begin_stage(callbacks: Iterable[Callback], stage: Stage) -> None:
    """Call the method `begin` of all callbacks that have one."""
    for begin in _methods(callbacks, "begin"):
        begin(stage)


Preparation = Callable[[str, int, int], None]
"""What is being prepared, how much of it is done, and of how much."""


def preparation(callbacks: Iterable[Callback]) -> Preparation:
    """A function that calls the method `prepare` of all callbacks that have one."""
    methods = _methods(callbacks, "prepare")

    def report(what: str, done: int, total: int) -> None:
        for prepare in methods:
            prepare(what, done, total)

    return report


def end_fit(callbacks: Iterable[Callback]) -> None:
    """Call the method `end` of all callbacks that have one."""
    for end in _methods(callbacks, "end"):
        end()


def _methods(callbacks: Iterable[Callback], name: str) -> list[Callable[..., None]]:
    return [getattr(callback, name) for callback in callbacks if hasattr(callback, name)]


class NewRows:
    """The rows that a state's history has gained since the last call."""

    def __init__(self) -> None:
        self.n_seen = 0

    def __call__(self, state: TrainState) -> list[dict[str, float]]:
        """The new rows, oldest first."""
        rows = list(state.history[self.n_seen :])
        self.n_seen = len(state.history)
        return rows


# --- histories ---------------------------------------------------------------------------------


class History:
    """A callback that keeps the history's rows.

    Parameters
    ----------
    path
        A CSV file that grows along; it is whole at every moment.

    Attributes
    ----------
    rows
        The rows so far.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: list[dict[str, float]] = []
        self._new_rows = NewRows()

    def begin(self, stage: Stage) -> None:
        """The rows of an earlier fit are forgotten."""
        self.rows, self._new_rows = [], NewRows()

    def __call__(self, state: TrainState) -> None:
        """Keep what is new."""
        new = self._new_rows(state)
        self.rows += new
        if new and self.path is not None:
            write_history(self.path, self.rows)


def write_history(path: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """A CSV file, one line a row; a column that only some rows have is empty in the others."""
    columns = dict.fromkeys(name for row in history for name in row)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    write_bytes(path, buffer.getvalue().encode())


# --- callbacks that end a run ------------------------------------------------------------------

HIGHER_IS_BETTER = ("validation_accuracy", "validation_r2")
"""Columns of the history that should rise; all others should fall."""


class EarlyStopping:
    """End a run when a column of the history has stopped improving.

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
        self._reset()

    def _reset(self) -> None:
        self._new_rows, self._n_worse = NewRows(), 0
        self._best: float | None = None

    def begin(self, stage: Stage) -> None:
        """Each fit is watched on its own."""
        self._reset()

    def __call__(self, state: TrainState) -> bool:
        """Whether patience has run out."""
        for row in self._new_rows(state):
            value = _value_of(row, self.monitor)
            self._compare(-value if self.monitor in HIGHER_IS_BETTER else value)
        return self._n_worse >= self.patience

    def _compare(self, value: float) -> None:
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
        """Each fit is watched on its own."""
        self._new_rows = NewRows()

    def __call__(self, state: TrainState) -> bool:
        """Whether a new row has reached it."""
        values = [_value_of(row, self.monitor) for row in self._new_rows(state)]
        if self.monitor in HIGHER_IS_BETTER:
            return any(value >= self.target for value in values)
        return any(value <= self.target for value in values)


def _value_of(row: dict[str, float], name: str) -> float:
    if name not in row:
        hint = (
            ' (those of validation rows need validation_data, and solver="spectral" has none)'
            if name.startswith("valid")
            else ""
        )
        raise InputError(
            f"the history has no column {name!r} to watch{hint}; it has {', '.join(row)}"
        )
    return row[name]


class TimeBudget:
    """End a fit after so many seconds, warm start and compilation included.

    It ends after the chunk of steps in which its time runs out.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise InputError(f"a time budget must be a number of seconds above 0, not {seconds!r}")
        self.seconds = seconds
        self._end: float | None = None

    def prepare(self, what: str, done: int, total: int) -> None:
        """The time runs from the first work on."""
        self._end = self._end or time.monotonic() + self.seconds

    def begin(self, stage: Stage) -> None:
        """The time runs from here, unless there was work before."""
        self._end = self._end or time.monotonic() + self.seconds

    def __call__(self, state: TrainState) -> bool:
        """Whether the time is up."""
        now = time.monotonic()
        self._end = self._end or now + self.seconds
        return now >= self._end

    def end(self) -> None:
        """The next fit has all the time again."""
        self._end = None
