"""A candidate of a search: the settings it may differ in, and a fit with a share of its steps."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

from piefs.errors import DivergedError, InputError, TrainingWarning
from piefs.estimators import PIEFSClassifier, PIEFSRegressor
from piefs.estimators.decisions import OF_DESCENT
from piefs.training.config import Settings
from piefs.training.solvers import SOLVERS

Keywords = dict[str, Any]
Record = dict[str, Any]

CHOICES: dict[str, tuple[Any, ...]] = {
    "weight_decay": ("auto", 0.1, 0.3, 1.0, 3.0, 10.0),
    "hidden": ("64 64 64", "64 64", "128 128", "32 32 32"),
    "activation": ("relu", "silu", "gelu"),
    "n_components": (4, 8, 16, 32),
    "metric": ("off", "diag", "agop"),
}
RANGES = {"smoothness": (3e-5, 0.1), "learning_rate": (1e-3, 1e-2)}
"""What is tried: the settings that matter most (LOG.md); the ranges on a logarithmic scale."""

FEWEST_STEPS = 50
ESTIMATORS: dict[str, type] = {"classification": PIEFSClassifier, "regression": PIEFSRegressor}


class TuningData(NamedTuple):
    """An unfitted estimator, the rows to fit it on and those to judge by; none for the test."""

    estimator: Any
    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]

    def digest(self) -> str:
        """A name for all of it, by the contents."""
        labels = np.concatenate([self.train[1], self.validation[1]])
        rows = [np.ascontiguousarray(x, np.float64) for x in (self.train[0], self.validation[0])]
        about = repr(sorted(self.estimator.get_params().items()))
        return str(joblib.hash([about, *rows, np.unique(labels, return_inverse=True)[1]]))


def tuning_data(
    X: Any, y: Any, validation_data: Any, task: str | None, keywords: Keywords
) -> TuningData:
    """The rows of a search; a share of them is set aside to judge by if none are given."""
    X, y = np.asarray(X), np.asarray(y)
    if task is None:
        is_class = type_of_target(y) in ("binary", "multiclass") and y.dtype.kind != "f"
        task = "classification" if is_class else "regression"
    if task not in ESTIMATORS:
        raise InputError(f"task {task!r} cannot be tuned; choose one of {', '.join(ESTIMATORS)}")
    if validation_data is None:
        can_stratify = task == "classification" and np.unique(y, return_counts=True)[1].min() > 1
        options = {"stratify": y if can_stratify else None, "random_state": 0}
        X, held_x, y, held_y = train_test_split(X, y, test_size=0.15, **options)
        validation_data = held_x, held_y
    held_x, held_y = map(np.asarray, validation_data)
    return TuningData(ESTIMATORS[task](**keywords), (X, y), (held_x, held_y))


def open_to_choice(fixed: Keywords) -> list[str]:
    """The settings that are not fixed and mean something to the solver that is."""
    solver = Settings.of(fixed.get("preset", "default"), solver=fixed.get("solver")).solver
    unused = {"eigen": OF_DESCENT, "sequential": ("smoothness",)}.get(solver, ())
    return [name for name in (*RANGES, *CHOICES) if name not in (*fixed, *unused)]


def drawn(trial: Any, names: list[str]) -> Keywords:
    """The keywords of a candidate: each setting differs from the default, or does not."""
    keywords: Keywords = {}
    for name in names:
        if not trial.suggest_categorical(f"change {name}", [False, True]):
            continue
        if name in RANGES:
            keywords[name] = float(f"{trial.suggest_float(name, *RANGES[name], log=True):.2g}")
        else:
            keywords[name] = trial.suggest_categorical(name, CHOICES[name])
    if "hidden" in keywords:
        keywords["hidden"] = [int(width) for width in keywords["hidden"].split()]
    return keywords


def fitted(data: TuningData, keywords: Keywords, share: float) -> Record:
    """The record of a fit, the job that a worker does: loss and its standard error, score, time.

    A fit that diverges, or that these rows do not allow, has a loss of None.
    """
    record: Record = {"keywords": keywords, "share": share}
    model: Any = clone(data.estimator)
    begun = time.monotonic()
    try:
        settings = model.set_params(**keywords).check_settings(len(data.train[0]))
        if SOLVERS[settings.solver].takes_steps:
            whole = settings.steps_per_component
            model.steps_per_component = max(round(share * whole), min(FEWEST_STEPS, whole))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)
            model.fit(*data.train, validation_data=data.validation)
    except (DivergedError, InputError) as error:
        return record | {"loss": None, "error": str(error), "seconds": time.monotonic() - begun}
    losses = row_losses(model, *data.validation)
    return record | {
        "loss": float(losses.mean()),
        "losses_error": float(losses.std() / np.sqrt(len(losses))),
        "score": float(model.score(*data.validation)),
        "seconds": time.monotonic() - begun,
        "row_losses": [round(float(loss), 6) for loss in losses],
    }


def row_losses(model: Any, x: Any, y: np.ndarray) -> np.ndarray:
    """The loss of each row: −log p of its class, or its squared error in units of the variance."""
    if isinstance(model, PIEFSRegressor):
        error = (y - model.predict(x)).reshape(len(x), -1) / model.target_scale_
        return np.mean(error**2, axis=1)
    return -model.predict_log_proba(x)[np.arange(len(x)), np.searchsorted(model.classes_, y)]
