"""One trial: a fit with given settings and a share of the steps, and its validation loss."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.special import log_softmax

from piefs.app.tuning.candidates import Keywords
from piefs.errors import DivergedError, InputError, TrainingWarning
from piefs.estimators import PIEFSClassifier, PIEFSRegressor

ESTIMATORS: dict[str, type] = {"classification": PIEFSClassifier, "regression": PIEFSRegressor}

FEWEST_STEPS = 50


class Problem:
    """The rows to fit and the rows to judge by; those of a test are not here."""

    def __init__(
        self, task: str, train: tuple[Any, Any], validation: tuple[Any, Any], standardize: bool
    ) -> None:
        if task not in ESTIMATORS:
            raise InputError(f"task {task!r} cannot be tuned: there is {', '.join(ESTIMATORS)}")
        self.task, self.train, self.validation = task, train, validation
        self.standardize = standardize

    def estimator(self, keywords: Keywords, seed: int) -> Any:
        """An unfitted estimator."""
        return ESTIMATORS[self.task](
            **{"standardize": self.standardize} | keywords, random_state=seed
        )

    def steps(self, keywords: Keywords) -> int:
        """The steps that a whole fit may take."""
        settings = self.estimator(keywords, 0).check_settings(len(self.train[0]))
        return settings.steps_per_component


def run_trial(problem: Problem, keywords: Keywords, share: float, seed: int) -> dict[str, Any]:
    """Loss with its standard error, score, steps and time of a fit with a share of the steps.

    A fit that diverges, or that these rows do not allow, has a loss of None.
    """
    steps = problem.steps(keywords)
    steps = max(round(share * steps), min(FEWEST_STEPS, steps))
    model = problem.estimator(keywords | {"steps_per_component": steps}, seed)
    begun = time.monotonic()
    record: dict[str, Any] = {"keywords": keywords, "share": share, "steps_allowed": steps}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)
            model.fit(*problem.train, validation_data=problem.validation)
    except (DivergedError, InputError) as error:
        return record | {"loss": None, "error": str(error), "seconds": time.monotonic() - begun}
    losses = row_losses(model, *problem.validation)
    return record | {
        "loss": float(losses.mean()),
        "losses_error": float(losses.std() / np.sqrt(len(losses))),
        "score": float(model.score(*problem.validation)),
        "steps": model.n_iter_,
        "seconds": time.monotonic() - begun,
        "row_losses": [round(float(loss), 6) for loss in losses],
    }


def row_losses(model: Any, x: Any, y: Any) -> np.ndarray:
    """The loss of each row: −log p of its class, or its squared error in units of the variance."""
    if isinstance(model, PIEFSRegressor):
        error = (np.asarray(y) - model.predict(x)).reshape(len(x), -1) / model.target_scale_
        return np.mean(error**2, axis=1)
    log_p = log_softmax(model._outputs(x), axis=1)
    return -log_p[np.arange(len(x)), np.searchsorted(model.classes_, np.asarray(y))]


def check_record(record: dict[str, Any], n_rows: int) -> None:
    """Refuse, with a ValueError or KeyError, what is no record of a trial judged by n_rows rows."""
    if not isinstance(record["keywords"], dict) or not _is_number(record["share"]):
        raise ValueError("no settings")
    if record["loss"] is None:
        if not isinstance(record["error"], str) or not _is_number(record["seconds"]):
            raise ValueError("neither a loss nor why there is none")
        return
    for name in ("loss", "losses_error", "score", "seconds"):
        if not _is_number(record[name]):
            raise ValueError(f"{name} is no number")
    if len(record["row_losses"]) != n_rows or not all(map(_is_number, record["row_losses"])):
        raise ValueError("the losses are not those of the validation rows")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
