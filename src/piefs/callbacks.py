"""Callbacks: progress, histories, checkpoints, and what ends a run (see `training.callbacks`)."""

from piefs.training.callbacks import EarlyStopping, History, Stage, TargetScore, TimeBudget
from piefs.training.checkpoint import Checkpoint
from piefs.training.progress import ProgressBar, ProgressPrinter

__all__ = [
    "Checkpoint",
    "EarlyStopping",
    "History",
    "ProgressBar",
    "ProgressPrinter",
    "Stage",
    "TargetScore",
    "TimeBudget",
]
