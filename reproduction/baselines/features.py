"""Feature maps to be followed by a linear probe, sized once the data are known.

Each is a scikit-learn transformer that makes its inner one in `fit`: the number of components is
clipped to what the data allow, and costs that grow with the square of the rows are bounded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.neural_network import MLPClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from piefs.errors import InputError
from reproduction.baselines.eigenfunctions import median_distance

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


class SizedFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer around `inner_`, which subclasses fit to the data at hand."""

    n_features_in_: int

    def __init__(self, n_components: int = 16, *, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SizedFeatures:
        """Fit the inner transformer to rows and, where it uses them, labels."""
        X = validate_data(self, X, dtype=(np.float64, np.float32), ensure_min_samples=2)
        self.n_components_ = self._most_components(*X.shape)
        self.inner_ = self._fitted(X, None if y is None else np.asarray(y))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features, shape (n, n_components_)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return np.asarray(self.inner_.transform(X))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _most_components(self, n_rows: int, n_features: int) -> int:
        """How many of the components asked for the data allow."""
        return min(self.n_components, n_rows, n_features)

    @abstractmethod
    def _fitted(self, X: np.ndarray, y: np.ndarray | None) -> Any:
        """An inner transformer fitted to the rows."""


class ClippedPCA(SizedFeatures):
    """Principal components, no more than there are rows or columns."""

    def _fitted(self, X: np.ndarray, y: np.ndarray | None) -> PCA:
        return PCA(self.n_components_, random_state=self.random_state).fit(X)


class SubsampledNCA(SizedFeatures):
    """Neighbourhood components analysis on at most 5,000 rows, class shares kept.

    Its cost grows with the square of the rows. It starts from the principal components.
    """

    max_rows = 5_000

    def _fitted(self, X: np.ndarray, y: np.ndarray | None) -> NeighborhoodComponentsAnalysis:
        if y is None:
            raise InputError("neighbourhood components analysis needs labels: call fit(X, y)")
        rows = stratified_rows(y, self.max_rows, self.random_state)
        return NeighborhoodComponentsAnalysis(
            self.n_components_, init="pca", random_state=self.random_state
        ).fit(X[rows], y[rows])


class MedianNystroem(SizedFeatures):
    """Nyström features of the Gaussian kernel exp(−|x − x′|²/2ℓ²), ℓ the median distance."""

    def _most_components(self, n_rows: int, n_features: int) -> int:
        return min(self.n_components, n_rows)

    def _fitted(self, X: np.ndarray, y: np.ndarray | None) -> Nystroem:
        bandwidth = median_distance(X, self.random_state)
        return Nystroem(
            gamma=1 / (2 * bandwidth**2),
            n_components=self.n_components_,
            random_state=self.random_state,
        ).fit(X)


class Bottleneck(SizedFeatures):
    """The last hidden layer, `n_components` wide, of a network trained to classify.

    Three hidden layers before it make up as many parameters as `n_components` maps φ_k have.
    """

    def _most_components(self, n_rows: int, n_features: int) -> int:
        return self.n_components

    def _fitted(self, X: np.ndarray, y: np.ndarray | None) -> LastHiddenLayer:
        if y is None:
            raise InputError("a bottleneck network needs labels: call fit(X, y)")
        net = matched_mlp(
            X, y, n_maps=self.n_components, last=(self.n_components,), seed=self.random_state
        )
        return LastHiddenLayer(net.fit(X, y))


class LastHiddenLayer:
    """x ↦ the values of a fitted ReLU network's last hidden layer."""

    def __init__(self, net: MLPClassifier) -> None:
        self.net = net

    def transform(self, x: np.ndarray) -> np.ndarray:
        """The activations, shape (n, width)."""
        for w, b in zip(self.net.coefs_[:-1], self.net.intercepts_[:-1], strict=True):
            x = np.maximum(x @ w + b, 0)
        return x


class SupervisedUMAP(SizedFeatures):
    """UMAP with labels; needs the optional package umap-learn."""

    def _most_components(self, n_rows: int, n_features: int) -> int:
        return self.n_components

    def _fitted(self, X: np.ndarray, y: np.ndarray | None) -> Any:
        try:
            from umap import UMAP  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise InputError(
                "the baseline 'umap' needs umap-learn: pip install umap-learn"
            ) from error
        labels = None if y is None else np.unique(y, return_inverse=True)[1]
        umap = UMAP(n_components=self.n_components, random_state=self.random_state, n_jobs=1)
        return umap.fit(X, labels)


def stratified_rows(y: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """At most `n_rows` row numbers, class shares kept (not where a class has a single row)."""
    rows = np.arange(len(y))
    if len(y) <= n_rows:
        return rows
    counts = np.unique(y, return_counts=True)[1]
    stratify = y if counts.min() >= 2 else None
    kept, _ = train_test_split(rows, train_size=n_rows, stratify=stratify, random_state=seed)
    return np.asarray(kept)
