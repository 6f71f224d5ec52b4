"""What `verbose` prints, and how callbacks hear what a run is at."""

from collections.abc import Iterable

from piefs.config import TrainConfig
from piefs.state import TrainState
from piefs.train import Callback


def announce(callbacks: Iterable[Callback], stage: str, n_steps: int) -> None:
    """Tell the callbacks that have a method `begin` what at most `n_steps` steps are now for."""
    for callback in callbacks:
        begin = getattr(callback, "begin", None)
        if begin is not None:
            begin(stage, n_steps)


class ProgressPrinter:
    """A callback: a line for each frozen map, and with `verbose` 2 for each interval."""

    def __init__(self, config: TrainConfig, verbose: int) -> None:
        self.config, self.verbose = config, verbose
        self.n_rows = 0

    def begin(self, stage: str, n_steps: int) -> None:
        """Print what the next steps are for."""
        print(f"{stage}: at most {n_steps:,} steps", flush=True)
        self.n_rows = 0

    def __call__(self, state: TrainState) -> None:
        """Print what is new in the state."""
        is_frozen = state.step == 0 and state.k > 0
        if self.verbose > 1 and len(state.history) > self.n_rows:
            print(f"  step {state.history[-1]['step']}: {self._losses(state)}", flush=True)
        self.n_rows = len(state.history)
        if is_frozen:
            n = self.config.n_components
            which = f"map {state.k} of {n}" if self.config.schedule == "sequential" else f"{n} maps"
            print(f"{which}: {self._losses(state)}", flush=True)

    def _losses(self, state: TrainState) -> str:
        row = state.history[-1]
        parts = [
            f"Gram error {row['gram_error']:.4f}",
            f"class loss {row['loss_class']:.4f}",
            f"energy {row['loss_mde']:.4g}",
        ]
        if "validation_accuracy" in row:
            parts.append(f"validation accuracy {row['validation_accuracy']:.4f}")
        return ", ".join(parts)
