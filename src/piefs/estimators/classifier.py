"""The classifier: coordinates with a linear readout."""

from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from piefs.data.rows import Rows
from piefs.errors import InputError
from piefs.estimators.base import Predictor
from piefs.estimators.dask import by_block
from piefs.estimators.inputs import checked_arrays, is_dask
from piefs.estimators.keywords import PARAMETERS
from piefs.training.solvers import Task


class PIEFSClassifier(ClassifierMixin, Predictor):
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

    def _learned_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, np.ndarray, Task]:
        X, y = checked_arrays(self, X, y)
        self.classes_, labels = encode_labels(y)
        return X, labels, Task("classification", len(self.classes_))

    def _targets_like(self, y: Any) -> np.ndarray:
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(f"validation_data has labels that y has not: {unknown[:3].tolist()}")
        return np.searchsorted(self.classes_, y).astype(np.int32)

    def _class_weight(self) -> Any:
        """A dict of class weights has indices for keys, as the labels are."""
        if not isinstance(self.class_weight, dict):
            return self.class_weight
        known = {label: index for index, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in self.class_weight if label not in known]
        if unknown:
            raise InputError(f"class_weight names classes that y has not: {unknown[:3]}")
        return {known[label]: weight for label, weight in self.class_weight.items()}

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits (n, n_classes); for two classes the margin logit₁ − logit₀, shape (n,)."""
        if is_dask(X):
            return by_block(self, "decision_function", X)
        return self._outputs(X, lambda z: z[:, 1] - z[:, 0] if z.shape[1] == 2 else z)

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


def encode_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes in sorted order, and each label as an index into them."""
    check_classification_targets(y)
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y has only one class, {str(classes[0])!r}; two are needed to classify")
    return classes, labels.astype(np.int32)
