"""Progress of a fit: a bar on a terminal, or printed lines anywhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from piefs.data.files import optional
from piefs.training.callbacks import Stage

if TYPE_CHECKING:
    from piefs.training.state import TrainState


class ProgressBar:
    """A live bar with the time left, on a terminal; elsewhere it shows nothing.

    It is drawn on a `rich.console.Console`, the standard output unless given, and needs
    `pip install 'piefs-learn[app]'`.
    """

    def __init__(self, console: Any = None) -> None:
        self.console = console
        self._bar: Any = None

    def prepare(self, what: str, done: int, total: int) -> None:
        """Show the progress of work before training."""
        if done == 0:
            self._start(what, total)
        elif self._bar is not None:
            self._bar.update(self._task, completed=done)

    def begin(self, stage: Stage) -> None:
        """Start again from zero."""
        self._stage = stage
        self._start("training, compiling", stage.settings.total_steps)

    def _start(self, description: str, total: int) -> None:
        if self._bar is None:
            progress = optional("rich.progress", "a ProgressBar")
            console = self.console or optional("rich.console", "a ProgressBar").Console()
            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.fields[note]}"),
                console=console,
                transient=True,
                disable=not console.is_terminal,
            )
            self._task = self._bar.add_task("", note="")
            self._bar.start()
        self._bar.reset(self._task, total=total, description=description, note="")

    def __call__(self, state: TrainState) -> None:
        """Move to the step of the state."""
        if self._bar is not None:
            row = state.history[-1] if state.history else {}
            self._bar.update(
                self._task,
                completed=self._stage.steps_done(state),
                description=f"training, {self._stage.describe(state)}",
                note=_score(row),
            )

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _score(row: dict[str, float]) -> str:
    """The score on validation rows, in words, if there is one."""
    if "validation_accuracy" in row:
        return f"validation accuracy {row['validation_accuracy']:.1%}"
    return f"validation R² {row['validation_r2']:.3f}" if "validation_r2" in row else ""


class ProgressPrinter:
    """What `verbose` prints: a line for each stage and each tenth of the steps, with the time left.

    With `verbose` 2 each row of the history has a line.
    """

    def __init__(self, verbose: int = 1) -> None:
        self.verbose = verbose

    def prepare(self, what: str, done: int, total: int) -> None:
        """Print what comes before training, when it begins."""
        if done == 0:
            print(f"{what}: {total:,} steps" if total > 1 else what, flush=True)

    def begin(self, stage: Stage) -> None:
        """Print what the next steps are for."""
        print(f"training: at most {stage.settings.total_steps:,} steps", flush=True)
        self._stage, self._n_rows, self._n_tenths, self._first = stage, 0, 0, None

    def __call__(self, state: TrainState) -> None:
        """Print what is new in the state."""
        total, done = self._stage.settings.total_steps, self._stage.steps_done(state)
        left, n_tenths = self._time_left(done, total), 10 * done // total
        is_due = self.verbose > 1 or n_tenths > self._n_tenths
        if len(state.history) > self._n_rows and is_due:
            row, which = state.history[-1], self._stage.describe(state)
            print(f"  step {row['step']:,}, {which}: {self._losses(row)}{left}", flush=True)
            self._n_rows, self._n_tenths = len(state.history), n_tenths

    def _losses(self, row: dict[str, float]) -> str:
        is_of_graph = self._stage.settings.solver == "spectral"
        loss = "distance to the graph" if is_of_graph else "class loss"
        parts = [f"Gram error {row['gram_error']:.4f}", f"{loss} {row['loss_class']:.4f}"]
        parts += [f"energy {row['loss_mde']:.4g}", *filter(None, [_score(row)])]
        return ", ".join(parts)

    def _time_left(self, done: int, total: int) -> str:
        """The words "; about … left", at the pace since the first call: after compilation."""
        now = time.monotonic()
        then, done_then = self._first = self._first or (now, done)
        if not done_then < done < total:
            return ""
        return f"; about {in_words((total - done) * (now - then) / (done - done_then))} left"


def in_words(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
