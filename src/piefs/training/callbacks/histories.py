"""The rows of a run's history, kept as they come: in a list, and in a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from piefs.training.callbacks.stages import NewRows, Stage
from piefs.training.history_file import write_history
from piefs.training.state import TrainState


class History:
    """A callback that keeps the history's rows, those of trials too, each with its stage's name.

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
        self.rows: list[dict[str, Any]] = []
        self._stage, self._new_rows = "training", NewRows()
        self._is_over = False

    def begin(self, stage: Stage) -> None:
        """The next rows are of this stage; those of an earlier fit are forgotten."""
        if self._is_over:
            self.rows, self._is_over = [], False
        self._stage, self._new_rows = stage.name, NewRows()

    def __call__(self, state: TrainState) -> None:
        """Keep what is new."""
        new = [{"stage": self._stage, **row} for row in self._new_rows(state)]
        self.rows += new
        if new and self.path is not None:
            write_history(self.path, self.rows)

    def end(self) -> None:
        """The next stage to begin belongs to another fit."""
        self._is_over = True
