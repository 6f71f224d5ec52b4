"""Callbacks: progress, histories, checkpoints, and what ends a run (see `training.callbacks`)."""

from piefs.training.callbacks import History, Stage, TimeBudget
from piefs.training.checkpoint import Checkpoint
from piefs.training.progress import ProgressBar, ProgressPrinter

__all__ = [
    "Checkpoint",
    "History",
    "ProgressBar",
    "ProgressPrinter",
    "Stage",
    "TimeBudget",
]
