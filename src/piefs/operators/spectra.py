"""Comparing spectra: errors of eigenvalues, and of eigenspaces where eigenvalues coincide."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.linalg


def relative_errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|μ − λ| / |λ|, and |μ| where λ = 0."""
    found, exact = np.asarray(found, float), np.asarray(exact, float)
    size = np.abs(exact)
    return np.abs(found - exact) / np.where(size > 0, size, 1.0)


def clusters(values: np.ndarray, tolerance: float = 1e-2) -> list[slice]:
    """Runs of ascending eigenvalues with gaps below `tolerance` of their size: one eigenspace each.

    The size is at least a thousandth of the largest value, so that zeros can be told apart.
    """
    values = np.asarray(values, float)
    size = np.maximum(np.abs(values[1:]), 1e-3 * np.abs(values).max(initial=0.0))
    breaks = np.flatnonzero(np.diff(values) > tolerance * size) + 1
    edges = [0, *breaks.tolist(), len(values)]
    return [slice(a, b) for a, b in pairwise(edges)]


def orthonormal(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """An orthonormal basis, in ℓ², of the span of √w f_j: (n, k) → (n, k)."""
    return np.linalg.qr(np.sqrt(weight)[:, None] * values)[0]


def principal_angles(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The angles between two spans of functions in L²(w), largest first, in radians."""
    return scipy.linalg.subspace_angles(orthonormal(first, weight), orthonormal(second, weight))


def projector_distance(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> float:
    """‖P − Q‖ of the projectors on two spans of one dimension: the sine of the largest angle."""
    return float(np.sin(principal_angles(first, second, weight)[0]))
