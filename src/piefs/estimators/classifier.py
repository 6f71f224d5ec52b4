"""The classifier: coordinates with a linear readout."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from piefs.errors import InputError
from piefs.estimators.base import BasePIEFS
from piefs.estimators.dask import by_block
from piefs.estimators.inputs import checked_arrays, is_dask
from piefs.estimators.keywords import PARAMETERS
from piefs.training.solvers import Task


class PIEFSClassifier(ClassifierMixin, BasePIEFS):
    __doc__ = f"""Classifier on K ordered, nearly orthonormal, smooth, label-aware coordinates.
    {PARAMETERS}
    classes_ : ndarray of shape (n_classes,)
        The class labels, in the order of the readout's outputs.

    Notes
    -----
    `class_weight` (a dict, "balanced" or None) weighs the classes in the readout's loss.

    Examples
    --------
    >>> from piefs import PIEFSClassifier
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = PIEFSClassifier(n_components=4, steps_per_component=50).fit(X, y)
    >>> model.transform(X).shape
    (300, 4)
    """

    classes_: np.ndarray

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = None,
        *,
        class_weight: dict | str | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(n_components, **keywords)
        self.class_weight = class_weight

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
        validation_data: tuple[Any, Any] | None = None,
    ) -> PIEFSClassifier:
        """Learn coordinates and readout from labelled rows.

        Parameters
        ----------
        X, y
            Training rows and their class labels, of any type.
        sample_weight
            Weights of the rows in all three losses. In closed form, whole numbers with a one among
            them count equal rows; of others only the ratios matter.
        X_unlabeled
            Further rows without labels; they count for orthogonality and smoothness, and with
            solver="spectral" for the graph.
        validation_data
            Rows and labels to score while training, and for early stopping; not used with
            solver="spectral", whose readout comes last.
        """
        X, y = checked_arrays(self, X, y)
        self.classes_, labels = encode_labels(y)
        if validation_data is not None:
            held_y = column_or_1d(validation_data[1])
            validation_data = (
                self._checked(validation_data[0]),
                label_indices(self.classes_, held_y),
            )
        self._fit(
            X,
            labels,
            task=Task("classification", len(self.classes_)),
            class_weight=_by_index(self.class_weight, self.classes_),
            sample_weight=sample_weight,
            X_unlabeled=X_unlabeled,
            validation_data=validation_data,
        )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits (n, n_classes); for two classes the margin logit₁ − logit₀, shape (n,)."""
        if is_dask(X):
            return by_block(self, "decision_function", X)
        return self._outputs(X, _margins)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n, n_classes), in the order of `classes_`."""
        if is_dask(X):
            return by_block(self, "predict_proba", X)
        return self._outputs(X, partial(softmax, axis=1))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities."""
        if is_dask(X):
            return by_block(self, "predict_log_proba", X)
        return self._outputs(X, partial(log_softmax, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        if is_dask(X):
            return by_block(self, "predict", X)
        return self._outputs(X, lambda logits: self.classes_[np.argmax(logits, axis=1)])


def _margins(logits: np.ndarray) -> np.ndarray:
    return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits


def encode_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes in sorted order, and each label as an index into them."""
    check_classification_targets(y)
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y has only one class, {str(classes[0])!r}; two are needed to classify")
    return classes, labels.astype(np.int32)


def label_indices(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels as indices into known classes."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise InputError(f"validation_data has labels that y has not: {unknown[:3].tolist()}")
    return np.searchsorted(classes, y).astype(np.int32)


def _by_index(class_weight: Any, classes: np.ndarray) -> Any:
    """A dict of class weights with indices for keys, as the labels are."""
    if not isinstance(class_weight, dict):
        return class_weight
    known = {label: index for index, label in enumerate(classes.tolist())}
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise InputError(f"class_weight names classes that y has not: {unknown[:3]}")
    return {known[label]: weight for label, weight in class_weight.items()}
