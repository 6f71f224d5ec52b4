"""What is measured of a fitted model: scores on test rows, orthonormality, maps that suffice."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    log_loss,
    matthews_corrcoef,
    mean_squared_error,
    r2_score,
)

from lab.experiments.data import Task
from piefs import PIEFSClassifier
from piefs.report.scores import expected_calibration_error

LEADING = (1, 2, 4, 8, 16)
PROBE_ROWS = 20_000


def scores(model: Any, task: Task) -> dict[str, Any]:
    """Everything of one run, as plain numbers."""
    if task.regression:
        predicted = model.predict(task.x_test)
        return {
            "r2": float(r2_score(task.y_test, predicted)),
            "rmse": float(mean_squared_error(task.y_test, predicted) ** 0.5),
            "train_r2": float(r2_score(task.y, model.predict(task.x))),
        } | geometry(model, task)
    p = model.predict_proba(task.x_test)
    predicted = p.argmax(axis=1)
    found = {
        "accuracy": float(np.mean(predicted == task.y_test)),
        "train_accuracy": float(np.mean(model.predict(task.x) == task.y)),
        "log_loss": float(log_loss(task.y_test, p, labels=np.arange(p.shape[1]))),
        "ece": expected_calibration_error(task.y_test, p),
    }
    if p.shape[1] == 2:
        found |= {
            "f1": float(f1_score(task.y_test, predicted)),
            "mcc": float(matthews_corrcoef(task.y_test, predicted)),
            "average_precision": float(average_precision_score(task.y_test, p[:, 1])),
        }
    return found | geometry(model, task)


def geometry(model: Any, task: Task) -> dict[str, Any]:
    """Gram errors on held-out rows, energies, and accuracy by the number of leading maps."""
    if not hasattr(model, "gram_errors"):
        return {}
    found = {
        "gram_error_train": model.gram_error_,
        "gram_error_test": model.gram_errors(task.x_test)["gram_error_unbiased"],
        "energy": float(model.energies_.sum()),
        "steps": model.n_iter_,
    }
    if isinstance(model, PIEFSClassifier):
        found["accuracy_by_maps"] = accuracy_by_maps(model, task)
    return found


def accuracy_by_maps(model: PIEFSClassifier, task: Task) -> dict[str, float]:
    """Test accuracy of a logistic regression on the first k coordinates, refitted for each k."""
    rows = np.random.default_rng(0).permutation(len(task.x))[:PROBE_ROWS]
    train, test = model.transform(task.x[rows]), model.transform(task.x_test)
    found = {}
    for k in (k for k in LEADING if k <= train.shape[1]):
        probe = LogisticRegression(C=10.0, max_iter=1000).fit(train[:, :k], task.y[rows])
        found[str(k)] = float(probe.score(test[:, :k], task.y_test))
    return found
