"""Settings that are "auto" until the rows are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from piefs.data.rows import Rows, is_lazy
from piefs.estimators.budget import worth_choosing

FEW_FEATURES = 64
ROWS_TO_SPARE = 10_000  # with so many rows, some can be set aside to stop on
LAZY_WINDOW = 2**17  # rows among which those read from a file are shuffled


def decide(
    settings: dict[str, Any], X: Rows, targets: np.ndarray | None, *, is_validated: bool
) -> None:
    """Put into the settings what these rows, and whether validation rows came with them, imply."""
    if settings["shuffle_window"] == "auto":
        settings["shuffle_window"] = LAZY_WINDOW if is_lazy(X) else None
    if settings["activation"] == "auto":
        settings["activation"] = activation_for(X.shape[1])
    if settings["early_stopping"] == "auto":
        settings["early_stopping"] = _stops_early(settings, X, targets, is_validated)


def activation_for(n_features: int) -> str:
    """What "auto" means: smooth maps of few features, where they generalise better.

    With many features the first layer takes most of the time and a ReLU's cheap derivative pays.
    """
    return "silu" if n_features <= FEW_FEATURES else "relu"


def _stops_early(
    settings: dict[str, Any], X: Rows, targets: np.ndarray | None, is_validated: bool
) -> bool:
    """In turn: where rows can be spared to stop on; all at once: where trials are worth it."""
    if settings["schedule"] == "spectral":
        return False  # no loss on labels while training
    if settings["schedule"] == "sequential":
        return is_validated or len(X) >= ROWS_TO_SPARE
    return targets is not None and worth_choosing(len(X), settings["steps_per_component"])
