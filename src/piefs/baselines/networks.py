"""scikit-learn's multilayer perceptrons at the size of K coordinate maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neural_network import MLPClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from piefs.baselines.sizes import matched_width


def matched_mlp(
    X: np.ndarray, y: np.ndarray, *, n_maps: int, last: tuple[int, ...] = (), seed: int
) -> MLPClassifier:
    """An unfitted perceptron (w, w, w, *last) with as many parameters as `n_maps` maps φ_k.

    Training ends when the accuracy on a tenth of the rows no longer rises; where that tenth could
    not hold every class, when the loss no longer falls.
    """
    counts = np.unique(y, return_counts=True)[1]
    n_outputs = len(counts) if len(counts) > 2 else 1
    width = matched_width(X.shape[1], (*last, n_outputs), n_maps)
    return MLPClassifier(
        (width, width, width, *last),
        early_stopping=bool(counts.min() >= 2 and len(y) >= 10 * len(counts)),
        max_iter=500,
        random_state=seed,
    )


class MatchedMLP(ClassifierMixin, BaseEstimator):
    """A perceptron of three hidden layers with as many parameters as `n_maps` maps φ_k."""

    n_features_in_: int

    def __init__(self, n_maps: int = 16, *, random_state: int = 0) -> None:
        self.n_maps = n_maps
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> MatchedMLP:
        """Train on rows and labels."""
        X, y = map(np.asarray, validate_data(self, X, y, dtype=(np.float64, np.float32)))
        check_classification_targets(y)
        self.net_ = matched_mlp(X, y, n_maps=self.n_maps, seed=self.random_state).fit(X, y)
        self.classes_ = self.net_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable classes."""
        return np.asarray(self.net_.predict(self._checked(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (n, C)."""
        return np.asarray(self.net_.predict_proba(self._checked(X)))

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return np.asarray(X)
