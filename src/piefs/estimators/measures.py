"""What estimators measure of rows and coordinates."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from piefs.core.losses import gram, gram_error, unbiased_gram_error
from piefs.errors import InputError
from piefs.training.batches import Samples

LABEL_ROWS = 2**20  # of which weights in double precision are in memory at a time


def leading_variance(samples: Samples, n_rows: int = 5000, n_iterations: int = 50) -> float:
    """The largest eigenvalue of the covariance, by power iteration on rows spread over the data."""
    counting = None if samples.weight is None else np.flatnonzero(samples.weights)
    n = len(samples) if counting is None else len(counting)
    rows = np.linspace(0, n - 1, min(n_rows, n)).astype(int)
    rows = rows if counting is None else counting[rows]
    x, weight = samples.x[rows].astype(np.float64), samples.weights[rows].astype(np.float64)
    weight /= weight.sum()
    centred = (x - weight @ x) * np.sqrt(weight)[:, None]
    direction = np.random.default_rng(0).standard_normal(x.shape[1])
    variance = 0.0
    for _ in range(n_iterations):
        direction = centred.T @ (centred @ (direction / np.linalg.norm(direction)))
        variance = float(np.linalg.norm(direction))
        if variance < np.finfo(np.float32).tiny:
            return 1.0  # all rows are the same: no length to speak of
    return variance


def loss_by_chance(samples: Samples) -> float | None:
    """The readout's loss where it says the same of every row: the entropy of the classes, or the
    variance of the numbers; None without labels.
    """
    if samples.target is None:
        return None
    total = samples.label_weights.sum(dtype=float)
    if samples.target.ndim == 1:
        n_classes = int(samples.target.max()) + 1
        parts = (np.bincount(y, w, minlength=n_classes) for y, w in _labels(samples))
        shares = sum(parts, start=np.zeros(n_classes)) / total
        return float(-np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
    mean = sum(w @ y for y, w in _labels(samples)) / total
    variance = sum(w @ (y - mean) ** 2 for y, w in _labels(samples)) / total
    return max(float(np.mean(variance)), float(np.finfo(np.float32).tiny))


def _labels(samples: Samples) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Targets and their weights in blocks: of very many, a copy in double precision is large."""
    for start in range(0, len(samples), LABEL_ROWS):
        rows = slice(start, start + LABEL_ROWS)
        yield samples.targets[rows], samples.label_weights[rows].astype(np.float64)


def gram_errors_of(phi: np.ndarray) -> dict[str, float]:
    """The three measures, in double precision."""
    with jax.enable_x64(True):
        phi64 = jnp.asarray(phi, jnp.float64)
        error = float(gram_error(gram(phi64)))
        unbiased = float(unbiased_gram_error(phi64)) if len(phi) > 1 else float("nan")
    return {
        "gram_error": error,
        "gram_residual": error**0.5,
        "gram_error_unbiased": unbiased,
    }


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
