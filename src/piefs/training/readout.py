"""Linear readouts on coordinates that are there already: convex problems, solved at once."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from piefs.core.model import Readout
from piefs.errors import InputError
from piefs.training.batches import Samples

AS_GOOD = 0.02  # of the loss by chance: what so small a share brings is not worth a map
PENALTIES = np.logspace(-3, 5, 17)
COVERED = (0.5, 0.8, 0.95)
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
    |W|²/2 for classes, the squared error and, of some multiples of |W|², the one of the smallest
    leave-one-out error for numbers. w are the label weights, divided by their mean, since only
    their ratios count; rows of weight zero have no label.
    """
    rows = np.flatnonzero(samples.label_weights > 0)
    weight = np.asarray(samples.label_weights[rows], np.float64)
    weight = weight if are_counts(weight) else weight / weight.mean()
    phi, targets = np.asarray(phi[rows], np.float64), samples.targets[rows]
    dtype: Any = samples.x.dtype
    if targets.ndim > 1:
        slopes, offsets = ridge_lines(phi, targets.astype(float), weight)
        return Readout(slopes.astype(dtype), offsets.astype(dtype))
    curve: Any = LogisticRegression(C=1.0, max_iter=1000).fit(phi, targets, weight)
    slopes, offsets = curve.coef_, curve.intercept_
    if len(slopes) == 1:  # two classes: the logit of the second, that of the first being zero
        slopes, offsets = np.vstack([np.zeros_like(slopes), slopes]), np.append(0.0, offsets)
    weights = np.zeros((n_outputs, phi.shape[1]))
    bias = np.full(n_outputs, offsets.min() - FAR_BELOW)
    weights[curve.classes_], bias[curve.classes_] = slopes, offsets
    return Readout(weights.astype(dtype), bias.astype(dtype))


def are_counts(weight: np.ndarray) -> bool:
    """Whether weights say how many equal rows each stands for: whole numbers, one among them."""
    return bool(np.any(weight == 1) and np.all(weight == np.round(weight)))


def ridge_lines(
    phi: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (o, K) and offsets (o,) of ridge regressions, their penalties by leave-one-out."""
    mass, unit = weight.sum(), np.minimum(weight, 1) if are_counts(weight) else weight
    means = weight @ phi / mass, weight @ y / mass
    x, y = phi - means[0], y - means[1]
    s, u = np.linalg.eigh((x * weight[:, None]).T @ x)
    p, best = x @ u, np.full(y.shape[1], np.inf)
    t, slopes = p.T @ (weight[:, None] * y), np.zeros((y.shape[1], phi.shape[1]))
    for penalty in PENALTIES:
        inverse = 1 / (np.maximum(s, 0) + penalty)
        q = unit * (p**2 @ inverse + 1 / mass)
        wrong = (y - p @ (t * inverse[:, None])) / np.maximum(1 - q, 1e-6)[:, None]
        errors = weight @ wrong**2
        slopes[errors < best] = (u @ (t * inverse[:, None])).T[errors < best]
        best = np.minimum(best, errors)
    return slopes, means[1] - slopes @ means[0]


def log_deviations(phi: np.ndarray, readout: Readout, samples: Samples) -> Readout:
    """log σ of the errors of numbers read off left-out coordinates, as a readout of these.

    Of min Σ_i w_i (log σ_i + e_i²/(2σ_i²)) + |v|²/2 for log σ = b + v·φ, then b is moved so that
    intervals of 50, 80 and 95 % hold these shares of the rows, as near as one number can.
    """
    weight = samples.label_weights.astype(float)
    weight = weight if are_counts(weight) else weight / weight.mean()
    errors = samples.targets - readout(phi)
    inputs = np.hstack([np.ones((len(phi), 1)), phi])
    penalty = np.array([0.0, *[1.0] * phi.shape[1]])
    found = []
    for e in errors.T:
        squares = np.maximum(e**2, np.finfo(float).tiny)

        def loss(v: np.ndarray, squares: np.ndarray = squares) -> tuple[float, np.ndarray]:
            log_sigma = np.clip(inputs @ v, -FAR_BELOW, FAR_BELOW)
            share = 0.5 * squares * np.exp(-2 * log_sigma)
            value = weight @ (log_sigma + share) + 0.5 * penalty @ v**2
            return float(value), inputs.T @ (weight * (1 - 2 * share)) + penalty * v

        begin = np.zeros(inputs.shape[1])
        begin[0] = 0.5 * np.log(np.average(squares, weights=weight))
        v = minimize(loss, begin, jac=True, method="L-BFGS-B").x
        scaled = np.abs(e) * np.exp(-inputs @ v)
        ratios = np.quantile(scaled, COVERED, weights=weight, method="inverted_cdf") / ndtri(
            0.5 + np.array(COVERED) / 2
        )
        v[0] += np.mean(np.log(np.maximum(ratios, np.finfo(float).tiny)))
        found.append(v)
    lines = np.array(found)
    return Readout(lines[:, 1:], lines[:, 0])


def fewest_within_error(losses: np.ndarray, chance: float = 0.0) -> int:
    """The first column of losses, (rows, K), whose mean is within an error of the lowest one."""
    means = losses.mean(axis=0)
    best = int(np.argmin(means))
    error = max(losses[:, best].std() / np.sqrt(len(losses)), AS_GOOD * chance)
    return 1 + int(np.argmax(means <= means[best] + error))


def probe_cross_entropy(features: np.ndarray, labels: np.ndarray) -> float:
    """The held-out cross-entropy of a logistic regression on features: a scale for T_class."""
    parts = train_test_split(features, labels, test_size=0.3, random_state=0)
    fitted_x, held_x, fitted_y, held_y = map(np.asarray, parts)
    if len(np.unique(fitted_y)) < 2:
        raise InputError("T_class cannot be calibrated: the subsample has only one class")
    probe = LogisticRegression(max_iter=1000).fit(fitted_x, fitted_y)
    known = np.isin(held_y, probe.classes_)
    loss = log_loss(held_y[known], probe.predict_proba(held_x[known]), labels=probe.classes_)
    return max(float(loss), 1e-3)
