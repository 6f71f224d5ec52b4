"""Scores of a fitted model: by split, by confidence, and by the number of maps kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

if TYPE_CHECKING:
    from piefs.data import Dataset, Split
    from piefs.estimators.base import BasePIEFS

Scores = dict[str, float | None]
N_BINS = 15  # of confidence
PROBE_ROWS = 5_000
KEPT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SCORES = (
    ("accuracy", "accuracy, %", lambda value: f"{100 * value:.2f}"),
    ("f1", "F1, %", lambda value: f"{100 * value:.2f}"),
    ("roc_auc", "ROC AUC", lambda value: f"{value:.4f}"),
    ("log_loss", "log loss", lambda value: f"{value:.4f}"),
    ("ece", "calibration error", lambda value: f"{value:.4f}"),
    ("r2", "R²", lambda value: f"{value:.4f}"),
    ("rmse", "RMSE", lambda value: f"{value:.4g}"),
    ("mae", "MAE", lambda value: f"{value:.4g}"),
)
"""The scores of predictions: the key in the metrics, a name for people, the value as text."""
SHOWN = (
    *SCORES,
    ("gram_error_unbiased", "Gram error ‖C − I‖²", lambda value: f"{max(value, 0.0):.4f}"),
)
"""All that is shown of a run; few rows' own Gram matrix would be off by chance alone."""


def probe(transformer: BasePIEFS, *, is_regression: bool) -> Pipeline:
    """A linear probe: logistic regression, or least squares, on a fitted transformer's coordinates.

    Both with scikit-learn's defaults; fitting it leaves the transformer as it is.
    """
    model = LinearRegression() if is_regression else LogisticRegression()
    return make_pipeline(FrozenEstimator(transformer), model)


def probe_scores_by_maps(phi: dict[str, np.ndarray], data: Dataset) -> dict[str, Any]:
    """The held-out score of a linear probe on the first 1, 2, … maps: accuracy, or R²."""
    k = phi["train"].shape[1]
    kept = [*(n for n in KEPT if n < k), k]
    rows = np.random.default_rng(0).permutation(len(data.train))[:PROBE_ROWS]
    x, y = phi["train"][rows], data.train.y[rows]
    scores: dict[str, list[float]] = {"validation": [], "test": []}
    model = LinearRegression() if data.is_regression else LogisticRegression(max_iter=200)
    for n in kept:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x[:, :n], y)
        for name, values in scores.items():
            values.append(float(model.score(phi[name][:, :n], data.splits[name].y)))
    return {"kept": kept, "scores": scores, "label": "R²" if data.is_regression else "accuracy"}


def evaluate(estimator: BasePIEFS, readout: Any, data: Dataset) -> dict[str, Any]:
    """Scores and Gram errors on every split, energies and log λ ranges of every map.

    `readout` is what predicts; if it is None there are no scores. A solver that takes no steps has
    no batches, so no Gram error of the last one.
    """
    found: dict[str, Any] = {} if readout is None else scores_by_split(readout, data)
    found |= _by_metric(lambda part: estimator.gram_errors(part.x), data)
    if estimator.history_:
        found["gram_error_batch"] = estimator.history_[-1]["gram_error"]
    ranges = estimator.log_scale_ranges_
    return found | {"energies": estimator.energies_.tolist(), "log_scale_ranges": ranges.tolist()}


def scores_by_split(model: Any, data: Dataset) -> dict[str, Scores]:
    """{metric: {split: value}} of any fitted model."""
    measure = regression_scores if data.is_regression else classification_scores
    return _by_metric(lambda part: measure(model, part), data)


def _by_metric(measure: Callable[[Split], Mapping[str, Any]], data: Dataset) -> dict[str, Scores]:
    """{metric: {split: value}} of what measures one split."""
    by_split = {name: measure(part) for name, part in data.splits.items()}
    names = by_split["train"]
    return {name: {split: row[name] for split, row in by_split.items()} for name in names}


def classification_scores(readout: Any, part: Split) -> Scores:
    """Accuracy, F1 (of class 1 for two classes, else macro), ROC-AUC, log loss, calibration error.

    A model that predicts labels only, without probabilities, has none of the last three.
    """
    p = readout.predict_proba(part.x) if hasattr(readout, "predict_proba") else None
    predicted = readout.predict(part.x) if p is None else p.argmax(axis=1)
    average = "binary" if part.y.max() <= 1 else "macro"
    scores: Scores = {
        "accuracy": float(metrics.accuracy_score(part.y, predicted)),
        "f1": float(metrics.f1_score(part.y, predicted, average=average)),
    }
    if p is None:
        return scores | dict.fromkeys(("roc_auc", "log_loss", "ece"))
    labels = np.arange(p.shape[1])
    ranked = p[:, 1] if len(labels) == 2 else p
    return scores | {
        "roc_auc": float(metrics.roc_auc_score(part.y, ranked, multi_class="ovr", labels=labels)),
        "log_loss": float(metrics.log_loss(part.y, p, labels=labels)),
        "ece": expected_calibration_error(part.y, p),
    }


def expected_calibration_error(truth: np.ndarray, probabilities: np.ndarray) -> float:
    """The gap between confidence and accuracy: ECE = Σ_b (n_b / n) |accuracy_b − confidence_b|.

    The bins b of confidence have equal width (Guo et al. 2017, eq. 3). 0 is best: of the rows
    predicted with 80 %, 80 % are correct. It says nothing about the accuracy itself.
    """
    bins = confidence_bins(truth, probabilities)
    gaps = np.abs(bins["accuracy"] - bins["confidence"])
    return float(np.sum(bins["counts"] * gaps) / len(truth))


def confidence_bins(truth: np.ndarray, probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """Mean confidence, share of correct rows and number of rows in (0, 1/15], (1/15, 2/15], ….

    The confidence of a row is the probability of its most probable class; empty bins are left out.
    """
    confidence = probabilities.max(axis=1).astype(np.float64)
    right = probabilities.argmax(axis=1) == truth
    bins = np.clip(np.ceil(confidence * N_BINS).astype(int) - 1, 0, N_BINS - 1)
    counts = np.bincount(bins)
    filled = np.flatnonzero(counts)
    sums = {"confidence": np.bincount(bins, confidence), "accuracy": np.bincount(bins, right)}
    means = {name: values[filled] / counts[filled] for name, values in sums.items()}
    return means | {"counts": counts[filled]}


def regression_scores(readout: Any, part: Split) -> Scores:
    """R², and the root mean squared and the mean absolute error in the units of the target.

    R² compares with the mean of these rows; it is None if they are all equal.
    """
    predicted = readout.predict(part.x)
    differ = len(part) > 1 and part.y.min() < part.y.max()
    return {
        "r2": float(metrics.r2_score(part.y, predicted)) if differ else None,
        "rmse": float(metrics.root_mean_squared_error(part.y, predicted)),
        "mae": float(metrics.mean_absolute_error(part.y, predicted)),
    }
