"""The run that is killed: begun, or gone on with, in a process of its own."""

from pathlib import Path
from typing import Any

from piefs.app.run import run
from piefs.data import load
from piefs.training.runtime import keep_compiled

SETTINGS: dict[str, Any] = {
    **{"solver": "sequential", "n_components": 3, "steps_per_component": 600, "hidden": (16, 16)},
    **{"batch_size": 256, "early_stopping": False, "random_state": 0},
    "optimizer": {"log_every": 50},
}


def whole_run(folder: Path) -> None:
    """What `piefs fit` does, with a checkpoint after every chunk of steps, and without a page."""
    keep_compiled()
    data = load("two-moons").head(2000)
    run(data, folder, resume=True, checkpoint_seconds=0.0, report=False, **SETTINGS)
