"""scikit-learn's multilayer perceptrons at the size of K coordinate maps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neural_network import MLPClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

MAP_HIDDEN = (64, 64, 64)


def n_parameters(sizes: Sequence[int]) -> int:
    """Weights and biases of a fully connected network with layer widths (in, hidden…, out).

    >>> n_parameters((2, 3, 1))
    13
    """
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def matched_width(n_features: int, after: Sequence[int], n_maps: int) -> int:
    """The width w at which three hidden layers of w hold as many parameters as `n_maps` maps φ_k.

    The network's widths are (d, w, w, w, *after), the maps' (d, 64, 64, 64, 1). The nearest such w.
    """
    wanted = n_maps * n_parameters((n_features, *MAP_HIDDEN, 1))

    def excess(width: int) -> int:
        return n_parameters((n_features, width, width, width, *after)) - wanted

    above = next(width for width in range(1, wanted + 1) if excess(width) >= 0)
    return min((max(1, above - 1), above), key=lambda width: abs(excess(width)))


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
