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


def notify(callbacks: Iterable[Callback], method: str, *arguments: Any) -> None:
    """Call a method of all callbacks that have it."""
    for callback in callbacks:
        if hasattr(callback, method):
            getattr(callback, method)(*arguments)


class History:
    """A callback that keeps the history's rows.

    `rows` are those so far; the CSV file at `path` grows along and is whole at every moment.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: list[dict[str, float]] = []

    def __call__(self, state: TrainState) -> None:
        """Keep what is new."""
        has_grown = list(state.history) != self.rows
        self.rows = list(state.history)
        if has_grown and self.path is not None:
            write_history(self.path, self.rows)


def write_history(path: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """A CSV file, one line a row; a column that only some rows have is empty in the others."""
    columns = dict.fromkeys(name for row in history for name in row)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    write_bytes(path, buffer.getvalue().encode())


def has_stalled(losses: Sequence[float], patience: int, tolerance: float) -> bool:
    """Whether the lowest of the last `patience` losses is below all before by too small a share."""
    if len(losses) <= patience:
        return False
    before, after = min(losses[:-patience]), min(losses[-patience:])
    return after >= before - tolerance * abs(before)


class TimeBudget:
    """End a fit after so many seconds, warm start and compilation included.

    It ends after the chunk of steps in which its time runs out.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise InputError(f"a time budget must be a number of seconds above 0, not {seconds!r}")
        self.seconds = seconds
        self._end: float | None = None

    def prepare(self, *about: Any) -> None:
        """The time runs from the first work on."""
        self._end = self._end or time.monotonic() + self.seconds

    begin = prepare

    def __call__(self, state: TrainState) -> bool:
        """Whether the time is up."""
        self.prepare()
        return self._end is not None and time.monotonic() >= self._end

    def end(self) -> None:
        """The next fit has all the time again."""
        self._end = None
