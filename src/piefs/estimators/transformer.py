"""The transformer: coordinates without a classifier, with or without labels."""

from typing import Any, Literal

import numpy as np
from sklearn.utils.multiclass import type_of_target

from piefs.errors import InputError
from piefs.estimators.base import BasePIEFS
from piefs.estimators.classifier import encode_labels
from piefs.estimators.inputs import checked_arrays
from piefs.estimators.keywords import PARAMETERS
from piefs.training.solvers import NO_LABELS, Task


class PIEFSTransformer(BasePIEFS):
    __doc__ = f"""Orthonormal, smooth coordinates, shaped by labels where there are any.
    {PARAMETERS}
    Notes
    -----
    `supervised` decides whether `y` is used: True asks for it, False ignores it, and None (the
    default) uses it if it is given and holds classes. Without labels the closed form is kernel PCA;
    for data on a curved sheet take solver="spectral", the eigenmaps of a neighbourhood graph. The
    preset "paper" has static weights, w_orth = w_mde = 1 (App. C of the paper).

    Examples
    --------
    >>> from piefs import PIEFSTransformer
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> PIEFSTransformer(n_components=3, preset="fast", random_state=0).fit_transform(X).shape
    (150, 3)
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = None,
        *,
        supervised: bool | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(n_components, **keywords)
        self.supervised = supervised

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "PIEFSTransformer":
        """Learn coordinates from rows, and from their labels as `supervised` says."""
        if self.supervised and y is None:
            raise InputError("supervised=True needs labels: call fit(X, y)")
        if self.supervised is not False and y is not None:
            X, y = checked_arrays(self, X, y)
        else:
            X, y = checked_arrays(self, X), None
        labels, task = None, NO_LABELS
        if y is not None and (self.supervised or holds_classes(y)):
            if self.solver == "spectral":
                raise InputError('solver="spectral" does not look at labels: fit without them')
            classes, labels = encode_labels(y)
            task = Task("classification", len(classes))
        self._fit(X, labels, task=task, sample_weight=sample_weight)
        return self


def holds_classes(y: np.ndarray) -> bool:
    """Whether y looks like at least two classes rather than numbers."""
    return type_of_target(y) in ("binary", "multiclass") and len(np.unique(y)) > 1
