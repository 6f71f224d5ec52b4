"""What coordinates are to explain: classes or numbers as centred columns, one row a sample."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from piefs.training.batches import Samples
from piefs.training.readout import are_counts
from piefs.training.solvers import Task

FAR_OUT = 10.0
"""Numbers beyond the quartiles by so many interquartile ranges count as lying there."""


class Labels(NamedTuple):
    """Centred targets y (n, C), their rows' boost β, and the columns' scale in T.

    Rows without a label have y = 0; β makes up for their number. For numbers, the columns are the
    standardised targets and their normal scores, so that a few far ones do not decide alone.
    Rows are left out one at a time, or with all that are in the same one of `groups`.
    """

    y: np.ndarray
    boost: float
    is_labelled: np.ndarray
    unit: np.ndarray  # of a row's weight, that is left out with it
    scale: np.ndarray
    evidence_columns: int  # of y that count in the evidence: classes but one, or all
    groups: np.ndarray | None = None

    @classmethod
    def of(cls, samples: Samples, task: Task) -> "Labels":
        """What T is made of."""
        weights = samples.weights.astype(float)
        label = samples.label_weights.astype(float)
        is_labelled = label > 0
        groups, unit = samples.groups, weights
        if groups is None and are_counts(weights):
            unit = np.minimum(weights, 1)  # one of equal rows
        if samples.target is None:
            return cls(np.zeros((len(samples), 0)), 1.0, is_labelled, unit, np.ones(0), 0)
        at = np.flatnonzero(is_labelled)
        mass = label[at] / label[at].sum()
        if task.kind == "classification":
            y = (samples.target[at, None] == np.arange(task.n_outputs)).astype(float)
            shares = mass @ y
            y, scale = (y - shares)[:, shares > 0], 1 / np.sqrt(shares[shares > 0])
            columns = y.shape[1] - 1
        else:
            bounded = within_reach(samples.target[at].astype(float), mass)
            y = np.hstack([standardized(bounded, mass), standardized(scores(bounded, mass), mass)])
            scale, columns = np.ones(y.shape[1]), y.shape[1]
        ratio = label[at] / np.maximum(weights[at], np.finfo(float).tiny)
        found = np.zeros((len(samples), y.shape[1]))
        found[at] = y * (ratio / np.average(ratio, weights=weights[at]))[:, None]
        boost = weights.sum() / weights[at].sum()
        return cls(found, boost, is_labelled, unit, scale, columns, groups)

    def left_out_with(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ uβy and Σ u of what is left out with each of these rows, (rows, C) and (rows, 1)."""
        u = self.unit[numbers][:, None]
        both = np.hstack([u * self.boost * self.y[numbers], u])
        if self.groups is not None:
            _, place = np.unique(self.groups[numbers], return_inverse=True)
            sums = np.zeros((place.max() + 1, both.shape[1]))
            np.add.at(sums, place, both)
            both = sums[place]
        return both[:, :-1], both[:, -1:]


def within_reach(y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Columns of numbers, those that lie far beyond the quartiles moved to that distance."""
    low, high = np.quantile(y, [0.25, 0.75], axis=0, weights=mass, method="inverted_cdf")
    reach = np.where(high > low, FAR_OUT * (high - low), np.inf)
    return np.clip(y, low - reach, high + reach)


def standardized(y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; a constant one is 0."""
    y = y - mass @ y
    deviation = np.sqrt(mass @ y**2)
    return y / np.where(deviation > 0, deviation, 1)


def scores(y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Normal scores of columns of numbers: the normal quantiles of their ranks."""
    found = np.empty_like(y)
    for column, score in zip(y.T, found.T, strict=True):
        _, place = np.unique(column, return_inverse=True)
        share = np.bincount(place, mass)
        score[:] = ndtri(np.clip(np.cumsum(share) - share / 2, 1e-9, 1 - 1e-9))[place]
    return found
