"""What ridge fits of the labels say of rows that are left out: one at a time, or by group.

By the formula of Sherman, Morrison and Woodbury, exactly: with f the fit, u the weights that are
left out and Q = ψᵀ(H + α)⁻¹ψ among their rows, it is (I − QU)⁻¹(f − QUβy). NumPy alone.
"""

from collections.abc import Iterator

import numpy as np

from piefs.core.kernel import RIDGES
from piefs.training.features import Blocks, Sums
from piefs.training.labels import Labels

RIDGE_ROWS, READOUT_ROWS, LEFT_OUT_ROWS = 4000, 20_000, 50_000
"""Rows that choose α, that fit the readout, and up to which all are left out in turn."""

MOST_LEVERAGE, TINY = 1 - 1e-6, 1e-9
"""Rows that no other row resembles decide their own fit: what would be 0/0 stays finite."""


def least_left_out_error(blocks: Blocks, labels: Labels, sums: Sums) -> float:
    """The ridge α of the smallest error of labels left out, over rows spread evenly."""
    errors = np.zeros(len(RIDGES))
    if not labels.y.shape[1]:
        return float(RIDGES[len(RIDGES) // 2])
    for numbers, _, left_out in fits(blocks, labels, sums, RIDGES, spread(labels, RIDGE_ROWS)):
        wrong = labels.y[numbers] - left_out
        errors += np.sum(wrong**2, axis=2) @ blocks.samples.weights[numbers].astype(float)
    return float(RIDGES[int(np.argmin(blocks.samples.devices.total(errors)))])


def without_own_label(
    blocks: Blocks, labels: Labels, sums: Sums, alpha: float, chosen: np.ndarray
) -> np.ndarray:
    """How much of each chosen row's ridge fit is due to what is left out with it, (rows, C)."""
    found = np.zeros((len(blocks.samples), labels.y.shape[1]))
    for numbers, fit, left_out in fits(blocks, labels, sums, np.array([alpha]), chosen):
        # Coordinates have no offset: what the other rows' mean moves is not theirs.
        own, mass = labels.left_out_with(numbers)
        found[numbers] = fit[0] - left_out[0] - own / (sums.mass - mass)
    return blocks.samples.devices.total(found)[chosen]


def fits(
    blocks: Blocks, labels: Labels, sums: Sums, ridges: np.ndarray, chosen: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Numbers of chosen rows, block by block; their fits, (ridges, rows, C); those left out."""
    inverse = 1 / (sums.s + ridges[:, None])
    for numbers, p in blocks.of(chosen, labels.groups):
        slopes = (inverse[:, :, None] * sums.t).astype(p.dtype)
        fit = np.stack([p @ slope for slope in slopes])
        if labels.groups is None:
            q = inverse.astype(p.dtype) @ (p**2).T + 1 / sums.mass
            leverage = np.minimum(labels.unit[numbers] * q, MOST_LEVERAGE)[:, :, None]
            own = labels.boost * labels.y[numbers]
            yield numbers, fit, (fit - leverage * own) / (1 - leverage)
        else:
            left_out = np.empty_like(fit)
            for rows in _runs(labels.groups[numbers]):
                part = numbers[rows], p[rows].astype(float), sums, labels
                for i, ridge in enumerate(ridges):
                    left_out[i, rows] = without_group(*part, ridge)
            yield numbers, fit, left_out


def without_group(
    numbers: np.ndarray, p: np.ndarray, sums: Sums, labels: Labels, ridge: float
) -> np.ndarray:
    """The fit of the rows of a group by all others, (rows, C): in as few unknowns as there are."""
    p = np.hstack([p, np.ones((len(p), 1))])  # of the offset
    h = np.append(sums.s + ridge, sums.mass)
    t = np.vstack([sums.t, np.zeros((1, sums.t.shape[1]))])
    u = labels.unit[numbers][:, None]
    own = u * labels.boost * labels.y[numbers]
    if len(p) > len(h):
        return p @ np.linalg.solve(np.diag(h) - p.T @ (u * p), t - p.T @ own)
    q = (p / h) @ p.T
    rest = (1 + TINY) * np.eye(len(p)) - q * u.T
    return np.linalg.solve(rest, p @ (t / h[:, None]) - q @ own)


def _runs(groups: np.ndarray) -> Iterator[slice]:
    """Where each group lies among rows that are sorted by group."""
    ends = [*(np.flatnonzero(np.diff(groups)) + 1), len(groups)]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        yield slice(start, end)


def spread(labels: Labels, most: int, all_up_to: int = 0) -> np.ndarray:
    """Labelled rows: all of them up to a number, else about so many, or whole groups, evenly."""
    rows = np.flatnonzero(labels.is_labelled)
    if len(rows) <= max(most, all_up_to):
        return rows
    if labels.groups is None:
        return rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    groups = np.unique(labels.groups[rows])
    step = min(-(-len(rows) // most), max(1, len(groups) // 2))
    return rows[np.isin(labels.groups[rows], groups[::step])]
