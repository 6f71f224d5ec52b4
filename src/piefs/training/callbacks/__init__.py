"""Watching a run: what is called between chunks of steps, and may ask for the run to end.

A callback is a callable. It sees the `TrainState` after every chunk of steps and after every frozen
map; where it returns True, the run ends, and the model is finished as it stands. It may have three
methods more: `prepare(what, done, total)` hears of work before training (a graph of the rows, maps
that are fitted to it), `begin(stage)` what the next steps are for (a `Stage`: a trial, or the
training proper), and `end()` is called when the fit is over, however it ended.
"""

from piefs.training.callbacks.histories import History
from piefs.training.callbacks.progress import ProgressBar, ProgressPrinter
from piefs.training.callbacks.stages import Stage
from piefs.training.callbacks.stopping import EarlyStopping, TargetScore, TimeBudget
from piefs.training.callbacks.trackers import MLflow, TensorBoard
from piefs.training.checkpoint import Checkpoint

__all__ = [
    "Checkpoint",
    "EarlyStopping",
    "History",
    "MLflow",
    "ProgressBar",
    "ProgressPrinter",
    "Stage",
    "TargetScore",
    "TensorBoard",
    "TimeBudget",
]
