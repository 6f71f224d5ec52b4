"""Linear readouts on coordinates that are there already: convex problems, solved at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from piefs.batches import Samples
from piefs.losses import Readout

PENALTY = 1.0  # of |W|²/2, against the sum of the losses: scikit-learn's default


def solved_readout(phi: np.ndarray, samples: Samples) -> Readout:
    """The readout of coordinates, shape (n, K), that fits the labelled rows best.

    Of min Σ_i w_i L(W φ(x_i) + b, y_i) + |W|²/2 with the logistic loss for classes, the squared
    error for numbers; w are the label weights. Rows of weight zero have no label.
    """
    rows = np.flatnonzero(samples.label_weights > 0)
    weight = np.asarray(samples.label_weights[rows], np.float64)
    phi, targets = np.asarray(phi[rows], np.float64), samples.targets[rows]
    if targets.ndim > 1:
        line: Any = Ridge(alpha=PENALTY).fit(phi, targets, weight)
        return _readout(line.coef_.reshape(-1, phi.shape[1]), line.intercept_, samples)
    curve: Any = LogisticRegression(C=1 / PENALTY, max_iter=1000).fit(phi, targets, weight)
    weights, bias = curve.coef_, curve.intercept_
    if len(weights) == 1:  # two classes: the logit of the second, that of the first being zero
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    return _readout(weights, bias, samples)


def _readout(weights: Any, bias: Any, samples: Samples) -> Readout:
    """On the host, in the precision of the rows."""
    dtype: Any = samples.x.dtype
    return Readout(weights.astype(dtype), bias.astype(dtype))
