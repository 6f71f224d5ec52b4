"""Watching a run, the public names: see `piefs.training.callbacks`."""

from piefs.training.callbacks import (
    Checkpoint,
    EarlyStopping,
    History,
    MLflow,
    ProgressBar,
    ProgressPrinter,
    Stage,
    TargetScore,
    TensorBoard,
    TimeBudget,
)

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
