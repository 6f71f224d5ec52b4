"""`python -m lab.tables.worker RECORDS TABLE METHOD IDLE SPLIT …`: the fits of one process."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, r2_score, root_mean_squared_error

from lab.tables import data
from lab.tables.methods import METHODS, Method
from lab.tables.records import record_name
from piefs.report.scores import expected_calibration_error
from reproduction.study import Study

LEAST_PROBABILITY = 1e-6
"""Smaller ones count as this in the log loss, or a single row would decide it."""


def measured(task: data.Task, method: Method) -> dict[str, Any]:
    """Scores on the test rows, seconds, and the most memory that the process has had so far."""
    start = time.perf_counter()
    model = method.fit(task)
    fitted = time.perf_counter()
    output = np.asarray((model.predict if task.regression else model.predict_proba)(task.x_test))
    done = time.perf_counter()
    own, children = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peak = max(resource.getrusage(who).ru_maxrss for who in (own, children))
    return scores(task.y_test, output, regression=task.regression) | {
        "rows": len(task.y),
        "test_rows": len(task.y_test),
        "columns": task.x.shape[1],
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(done - fitted, 4),
        "peak_mb": round(peak / 1024),
        **method.more(model, task),
    }


def scores(truth: np.ndarray, output: np.ndarray, *, regression: bool) -> dict[str, float]:
    """R² and RMSE of predicted numbers; accuracy, log loss and ECE of predicted probabilities."""
    if regression:
        output = output.reshape(len(truth))
        return {
            "r2": float(r2_score(truth, output)),
            "rmse": float(root_mean_squared_error(truth, output)),
        }
    p = output.astype(float)
    p /= p.sum(axis=1, keepdims=True)
    floored = np.maximum(p, LEAST_PROBABILITY)
    floored /= floored.sum(axis=1, keepdims=True)
    return {
        "accuracy": float(np.mean(p.argmax(axis=1) == truth)),
        "log_loss": float(log_loss(truth, floored, labels=np.arange(p.shape[1]))),
        "ece": expected_calibration_error(truth, p),
    }


def run(path: str, table: str, name: str, splits: list[int], *, idle: bool) -> None:
    """Fit and record one method on some splits of one table."""
    method, read = METHODS[name], data.read(table)
    about = {
        "table": table,
        "task": "regression" if read.regression else "classification",
        "method": name,
        "key": method.key,
        "idle": idle,
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in method.packages},
    }
    for split in splits:
        task = data.task(read, split, categories=method.categories, gaps=method.gaps)
        record = about | {"split": split} | measured(task, method)
        Study(path).add(record_name(table, name, split), record)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    path, table, name, idle, *splits = sys.argv[1:]
    run(path, table, name, [int(split) for split in splits], idle=idle == "idle")
