"""What is measured of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from piefs.datasets import Dataset, Split
from piefs.estimators import PIEFSClassifier, PIEFSTransformer


class Probe:
    """A linear probe: logistic regression on the coordinates of a fitted transformer."""

    def __init__(self, transformer: PIEFSTransformer) -> None:
        self.transformer = transformer

    def fit(self, x: np.ndarray, y: np.ndarray) -> Probe:
        """Fit on the coordinates of x, with scikit-learn's default settings."""
        self.regression = LogisticRegression().fit(self.transformer.transform(x), y)
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        """Class probabilities."""
        return self.regression.predict_proba(self.transformer.transform(x))

    def decision_function(self, x: np.ndarray) -> np.ndarray:
        """Margins, or logits."""
        return self.regression.decision_function(self.transformer.transform(x))


def evaluate(
    estimator: PIEFSClassifier | PIEFSTransformer,
    readout: PIEFSClassifier | Probe | None,
    data: Dataset,
) -> dict[str, Any]:
    """Scores and Gram errors on every split, energies and log λ ranges of every map.

    Without anything that predicts there are no scores.
    """
    scores = {} if readout is None else scores_by_split(readout, data)
    grams = {name: estimator.gram_errors(part.x) for name, part in data.splits.items()}
    last = estimator.history_[-1]
    return (
        scores
        | _by_metric(grams)
        | {
            "gram_error_batch": last["gram_error"],
            "energies": estimator.energies_.tolist(),
            "log_scale_ranges": estimator.log_scale_ranges_.tolist(),
        }
    )


def scores_by_split(model: Any, data: Dataset) -> dict[str, dict[str, float | None]]:
    """{metric: {split: value}} of anything that predicts."""
    parts = data.splits.items()
    return _by_metric({name: classification_scores(model, part) for name, part in parts})


def _by_metric(
    by_split: Mapping[str, Mapping[str, float | None]],
) -> dict[str, dict[str, float | None]]:
    """{split: {metric: value}} turned into {metric: {split: value}}."""
    names = next(iter(by_split.values()))
    return {name: {split: row[name] for split, row in by_split.items()} for name in names}


def classification_scores(readout: Any, part: Split) -> dict[str, float | None]:
    """Accuracy, F1 (of class 1 for two classes, else macro), ROC-AUC and log loss.

    What predicts labels only, without probabilities, has neither of the latter two.
    """
    if not hasattr(readout, "predict_proba"):
        predicted = readout.predict(part.x)
        return _label_scores(part.y, predicted) | {"roc_auc": None, "log_loss": None}
    probabilities = readout.predict_proba(part.x)
    labels = np.arange(probabilities.shape[1])
    binary = len(labels) == 2
    return _label_scores(part.y, probabilities.argmax(axis=1)) | {
        "roc_auc": float(
            roc_auc_score(part.y, probabilities[:, 1])
            if binary
            else roc_auc_score(part.y, probabilities, multi_class="ovr", labels=labels)
        ),
        "log_loss": float(log_loss(part.y, probabilities, labels=labels)),
    }


def _label_scores(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
    average = "binary" if truth.max() <= 1 else "macro"
    return {
        "accuracy": float(accuracy_score(truth, predicted)),
        "f1": float(f1_score(truth, predicted, average=average)),
    }
