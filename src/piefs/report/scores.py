"""Scores of a fitted model: by split, by confidence, and by the number of maps kept."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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
CALIBRATION_BINS = 15
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
    kept = sorted({n for n in KEPT if n < k} | {k})
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
    found |= _by_metric({s: estimator.gram_errors(part.x) for s, part in data.splits.items()})
    if estimator.history_:
        found["gram_error_batch"] = estimator.history_[-1]["gram_error"]
    ranges = estimator.log_scale_ranges_
    return found | {"energies": estimator.energies_.tolist(), "log_scale_ranges": ranges.tolist()}


def scores_by_split(model: Any, data: Dataset) -> dict[str, Scores]:
    """{metric: {split: value}} of any fitted model."""
    measure = regression_scores if data.is_regression else classification_scores
    return _by_metric({name: measure(model, part) for name, part in data.splits.items()})


def _by_metric(by_split: Mapping[str, Mapping[str, float | None]]) -> dict[str, Scores]:
    """{split: {metric: value}} turned into {metric: {split: value}}."""
    names = next(iter(by_split.values()))
    return {name: {split: row[name] for split, row in by_split.items()} for name in names}


def classification_scores(readout: Any, part: Split) -> Scores:
    """Accuracy, F1 (of class 1 for two classes, else macro), ROC-AUC, log loss, calibration error.

    A model that predicts labels only, without probabilities, has none of the last three.
    """
    if not hasattr(readout, "predict_proba"):
        missing: Scores = dict.fromkeys(("roc_auc", "log_loss", "ece"))
        return _label_scores(part.y, readout.predict(part.x)) | missing
    p = readout.predict_proba(part.x)
    labels = np.arange(p.shape[1])
    ranked = p[:, 1] if len(labels) == 2 else p
    return _label_scores(part.y, p.argmax(axis=1)) | {
        "roc_auc": float(metrics.roc_auc_score(part.y, ranked, multi_class="ovr", labels=labels)),
        "log_loss": float(metrics.log_loss(part.y, p, labels=labels)),
        "ece": expected_calibration_error(part.y, p),
    }


def _label_scores(truth: np.ndarray, predicted: np.ndarray) -> Scores:
    average = "binary" if truth.max() <= 1 else "macro"
    return {
        "accuracy": float(metrics.accuracy_score(truth, predicted)),
        "f1": float(metrics.f1_score(truth, predicted, average=average)),
    }


def expected_calibration_error(
    truth: np.ndarray, probabilities: np.ndarray, n_bins: int = CALIBRATION_BINS
) -> float:
    """The gap between confidence and accuracy: ECE = Σ_b (n_b / n) |accuracy_b − confidence_b|.

    The confidence of a row is the probability of its most probable class. Rows are binned by it,
    the bins b being (0, 1/15], (1/15, 2/15], …, of equal width (Guo et al. 2017, eq. 3); each
    compares the share of its rows that are correct with their mean confidence. 0 is best: of the
    rows predicted with 80 %, 80 % are correct. It says nothing about the accuracy itself.
    """
    bins = confidence_bins(truth, probabilities, n_bins)
    return float(np.sum(bins.counts * np.abs(bins.accuracy - bins.confidence)) / len(truth))


class Bins(NamedTuple):
    """Rows in bins of confidence, empty bins left out: (n_bins,) each."""

    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray


def confidence_bins(
    truth: np.ndarray, probabilities: np.ndarray, n_bins: int = CALIBRATION_BINS
) -> Bins:
    """Mean confidence, share of correct rows and number of rows in bins of confidence."""
    confidence = probabilities.max(axis=1).astype(np.float64)
    right = probabilities.argmax(axis=1) == truth
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    counts = np.bincount(bins)
    filled = np.flatnonzero(counts)
    means = [np.bincount(bins, values)[filled] / counts[filled] for values in (confidence, right)]
    return Bins(means[0], means[1], counts[filled])


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
