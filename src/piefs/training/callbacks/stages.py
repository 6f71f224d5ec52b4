"""What the next steps are for, and how callbacks hear of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from piefs.training.config import Settings
from piefs.training.loop import Callback
from piefs.training.state import TrainState


@dataclass(frozen=True)
class Stage:
    """One run of training within a fit.

    `name` says what it is for ("trial 2 of 3", "training"), `settings` what will be done; with
    `n_left` stages to come, itself included, as far as is known. A trial's model is not kept.
    """

    name: str
    settings: Settings
    n_left: int = 1
    is_trial: bool = False

    def steps_done(self, state: TrainState) -> int:
        """Steps behind the state, a turn that ended early counted whole."""
        return len(state.steps) * self.settings.steps_per_component + state.step

    def describe(self, state: TrainState) -> str:
        """Which maps descend, or were frozen last."""
        n = self.settings.n_components
        if self.settings.solver != "sequential":
            return f"all {n} maps" if n > 1 else "1 map"
        return f"map {min(state.k + (not state.is_between_turns), n)} of {n}"


def announce(callbacks: Iterable[Callback], stage: Stage) -> None:
    """Tell the callbacks that have a method `begin` what comes next."""
    for callback in callbacks:
        begin = getattr(callback, "begin", None)
        if begin is not None:
            begin(stage)


Telling = Callable[[str, int, int], None]
"""What is being prepared, how much of it is done, and of how much."""


def telling(callbacks: Iterable[Callback]) -> Telling:
    """A function that tells the callbacks with a method `prepare` what comes before training."""
    methods = [getattr(callback, "prepare", None) for callback in callbacks]

    def tell(what: str, done: int, total: int) -> None:
        for prepare in methods:
            if prepare is not None:
                prepare(what, done, total)

    return tell


def dismiss(callbacks: Iterable[Callback]) -> None:
    """Tell the callbacks that have a method `end` that the fit is over."""
    for callback in callbacks:
        end = getattr(callback, "end", None)
        if end is not None:
            end()


class NewRows:
    """The rows that a state's history has gained since the last look."""

    def __init__(self) -> None:
        self.n_seen = 0

    def __call__(self, state: TrainState) -> list[dict[str, float]]:
        """The new rows, oldest first."""
        rows = list(state.history[self.n_seen :])
        self.n_seen = len(state.history)
        return rows
