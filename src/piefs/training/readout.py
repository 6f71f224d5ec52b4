"""Linear readouts on coordinates that are there already: convex problems, solved at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from piefs.core.losses import Readout
from piefs.errors import InputError
from piefs.training.batches import Samples

FAR_BELOW = 100.0  # a logit for classes that no row with a weight has


def check_readable(samples: Samples) -> None:
    """Refuse labels on which no readout could be solved."""
    if samples.target is None or samples.target.ndim > 1:
        return
    if len(np.unique(samples.targets[samples.label_weights > 0])) < 2:
        raise InputError(
            "only one class has rows with a weight; two are needed to classify: look at "
            "class_weight and sample_weight"
        )


def solved_readout(phi: np.ndarray, samples: Samples, n_outputs: int) -> Readout:
    """The readout of coordinates, shape (n, K), that fits the labelled rows best.

    Of min Σ_i w_i L(W φ(x_i) + b, y_i) + penalty, with scikit-learn's own: the logistic loss and
    |W|²/2 for classes, the squared error and |W|² for numbers. w are the label weights, divided by
    their mean, since only their ratios count; rows of weight zero have no label.
    """
    rows = np.flatnonzero(samples.label_weights > 0)
    weight = np.asarray(samples.label_weights[rows], np.float64)
    weight /= weight.mean()
    phi, targets = np.asarray(phi[rows], np.float64), samples.targets[rows]
    if targets.ndim > 1:
        line: Any = Ridge(alpha=1.0).fit(phi, targets, weight)
        return _readout(line.coef_.reshape(-1, phi.shape[1]), line.intercept_, samples)
    curve: Any = LogisticRegression(C=1.0, max_iter=1000).fit(phi, targets, weight)
    slopes, offsets = curve.coef_, curve.intercept_
    if len(slopes) == 1:  # two classes: the logit of the second, that of the first being zero
        slopes, offsets = np.vstack([np.zeros_like(slopes), slopes]), np.append(0.0, offsets)
    weights = np.zeros((n_outputs, phi.shape[1]))
    bias = np.full(n_outputs, offsets.min() - FAR_BELOW)
    weights[curve.classes_], bias[curve.classes_] = slopes, offsets
    return _readout(weights, bias, samples)


def _readout(weights: Any, bias: Any, samples: Samples) -> Readout:
    """On the host, in the precision of the rows."""
    dtype: Any = samples.x.dtype
    return Readout(weights.astype(dtype), bias.astype(dtype))
