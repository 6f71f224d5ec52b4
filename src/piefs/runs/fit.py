"""Fit, measure, write: what `piefs fit` and `piefs demo` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from piefs.datasets import Dataset
from piefs.estimators import PIEFSClassifier, PIEFSTransformer
from piefs.estimators.files import save
from piefs.io import atomic
from piefs.io.checkpoints import Checkpoint
from piefs.io.models import library_versions
from piefs.runs.figures import draw
from piefs.runs.folder import RunFolder, write_history
from piefs.runs.scores import Probe, evaluate
from piefs.train import Callback

TASKS = ("classification", "unsupervised")
CHECKPOINT_SECONDS = 5.0


def run(
    dataset: Dataset,
    out: str | Path,
    *,
    task: str = "classification",
    unlabeled: np.ndarray | None = None,
    document: dict[str, Any] | None = None,
    resume: bool = False,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    callbacks: Sequence[Callback] = (),
    **keywords: Any,
) -> dict[str, Any]:
    """Fit with the given estimator keywords, write the run folder, return its metrics.

    Without labels (`task="unsupervised"`) accuracies are those of a logistic regression with
    scikit-learn's defaults, fitted on the training coordinates. `document` is added to model.json.
    """
    folder = RunFolder(out)
    checkpoint = Checkpoint(folder.checkpoint, every_seconds=checkpoint_seconds, resume=resume)
    keywords = {
        "standardize": dataset.standardize,
        "callbacks": [checkpoint, *callbacks],
        **keywords,
    }
    supervised = task == "classification"
    estimator = (PIEFSClassifier if supervised else PIEFSTransformer)(**keywords)
    estimator.check_settings(len(dataset.train), supervised=supervised)
    with folder.opened(resume=resume, force=force):
        readout = _fit(estimator, dataset, unlabeled)
        metrics = {
            "dataset": dataset.name,
            "task": task,
            **evaluate(estimator, readout, dataset),
            "steps": estimator.n_iter_,
            "steps_saved": estimator.config_.total_steps - estimator.n_iter_,
            "seconds": checkpoint.seconds,
            "steps_per_second": estimator.n_iter_ / checkpoint.seconds,
            "versions": library_versions(),
            "config": estimator.settings_ | {"seed": estimator.seed_},
        }
        save(estimator, folder.model, document)
        write_history(folder.history, estimator.history_)
        draw(estimator, readout, dataset, folder.figures)
        atomic.write_json(folder.metrics, metrics)
        folder.checkpoint.unlink(missing_ok=True)
    return metrics


def _fit(
    estimator: PIEFSClassifier | PIEFSTransformer, data: Dataset, unlabeled: np.ndarray | None
) -> PIEFSClassifier | Probe | None:
    """Fit, and give back what predicts: the classifier, or a probe where there are classes."""
    if isinstance(estimator, PIEFSClassifier):
        held_out = data.validation.x, data.validation.y
        return estimator.fit(
            data.train.x, data.train.y, X_unlabeled=unlabeled, validation_data=held_out
        )
    rows = data.train.x if unlabeled is None else np.concatenate([data.train.x, unlabeled])
    estimator.fit(rows)
    return Probe(estimator).fit(data.train.x, data.train.y) if len(data.class_names) > 1 else None
