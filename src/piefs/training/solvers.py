"""What every solver is given and gives back, and the solvers by name, imported when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

from piefs.core.model import Model

if TYPE_CHECKING:
    from piefs.training.batches import Row
    from piefs.training.config import Settings
    from piefs.training.diagnosis import Finding


@dataclass(frozen=True)
class Task:
    """What the readout's outputs are: logits of classes, standardised numbers, or none at all."""

    kind: str | None = None  # "classification" or "regression"
    n_outputs: int = 0

    def losses(self, outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The loss of each row, (n,): its cross-entropy, or its squared error."""
        outputs = outputs.astype(np.float64)
        if self.kind == "regression":
            return np.mean((outputs - targets) ** 2, axis=1)
        return -np.take_along_axis(log_softmax(outputs, axis=1), targets[:, None], axis=1)[:, 0]

    def scores(self, outputs: np.ndarray, targets: np.ndarray) -> Row:
        """What a history says of validation rows."""
        loss = float(np.mean(self.losses(outputs, targets)))
        if self.kind == "classification":
            accuracy = float(np.mean(outputs.argmax(axis=1) == targets))
            return {"validation_accuracy": accuracy, "validation_loss": loss}
        variance = np.maximum(np.var(targets, axis=0), np.finfo(np.float64).tiny)
        errors = np.mean((outputs.astype(np.float64) - targets) ** 2, axis=0)
        return {"validation_r2": float(np.mean(1 - errors / variance)), "validation_loss": loss}


NO_LABELS = Task()


@dataclass(frozen=True)
class Fitted:
    """What a solver has found, in NumPy.

    `model` has maps, mixing, metric and readout, for scaled rows; `settings` are those that were
    used, with what the solver decided. On the rows it was solved on: `coordinates` (n, K), their
    Gram matrix and Dirichlet form (K, K), `energies` (K,), and `log_scale_ranges` (K, 2), the
    least and greatest logarithm of the metric's scales. `steps` has one entry for each turn.
    `left_out` are the rows' coordinates as if each had been left out, if the solver knows them.
    """

    model: Model
    settings: Settings
    coordinates: np.ndarray
    gram: np.ndarray
    dirichlet: np.ndarray
    energies: np.ndarray
    log_scale_ranges: np.ndarray
    history: Sequence[Row] = ()
    steps: Sequence[int] = ()
    warnings: Sequence[Finding] = ()
    left_out: np.ndarray | None = None


DESCENT = ("nested", "joint", "sequential", "spectral")
"""The solvers that take steps, so that they have a history, and states to resume from."""

SOLVERS = {"eigen": "piefs.training.eigen"} | dict.fromkeys(DESCENT, "piefs.training.descent")
"""The module of each solver."""


def solver_for(name: str) -> Callable[..., Fitted]:
    """The function `solve` of a solver's module: from scaled rows to all that is known of a model.

    It takes (samples, settings, task, *, validation, callbacks, warm_start); `settings` have no
    "auto" left, and `warm_start` is an earlier fit's model.
    """
    return import_module(SOLVERS[name]).solve
