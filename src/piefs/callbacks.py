"""Callbacks: progress, histories, checkpoints, and what ends a run (see `training.callbacks`)."""

from piefs.training.callbacks import History, ProgressBar, ProgressPrinter, Stage
from piefs.training.checkpoint import Checkpoint

__all__ = [
    "Checkpoint",
    "History",
    "ProgressBar",
    "ProgressPrinter",
    "Stage",
]
