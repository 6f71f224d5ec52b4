"""Features of a kernel at landmarks, block by block; their sums; and ridge fits without a row.

Fits of the labels without a row, or without its group, follow exactly from those of all rows
(Sherman, Morrison and Woodbury): with f the fit, u the weights that are left out and
Q = ψᵀ(H + α)⁻¹ψ among their rows, they are (I − QU)⁻¹(f − QUβy). No JAX.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri  # pyright: ignore[reportAttributeAccessIssue]

from piefs.core.kernel import RIDGES, Kernel, KernelMaps
from piefs.data.rows import added, is_far
from piefs.training.batches import Samples
from piefs.training.evaluation import blockwise
from piefs.training.labels import Labels

BLOCK_ROWS = 8192
KEPT_ELEMENTS = 2**25  # of features in memory at a time
JITTER, NULL = 1e-6, 1e-8

RIDGE_ROWS, READOUT_ROWS, LEFT_OUT_ROWS = 4000, 20_000, 50_000
"""Rows that choose α, that fit the readout, and up to which all are left out in turn."""

MOST_LEVERAGE, TINY = 1 - 1e-6, 1e-9
"""Rows that no other row resembles decide their own fit: what would be 0/0 stays finite."""


class Sums(NamedTuple):
    """Over rows, in the basis of eigenvectors: Σ w ψψᵀ = U diag(s) Uᵀ and t = Uᵀ Σ w β ψyᵀ.

    ψ is centred; `mean` is what was taken off, and directions that no row has are left out.
    """

    s: np.ndarray
    u: np.ndarray
    t: np.ndarray
    mean: np.ndarray
    mass: float


@dataclass(frozen=True, eq=False)
class Features:
    """ψ(x) = L⁻¹k(Z, x) with LLᵀ = k(Z, Z): features of a kernel, of landmarks Z, whitened."""

    kernel: Kernel
    landmarks: np.ndarray
    whitening: np.ndarray  # L⁻ᵀ

    @classmethod
    def of(cls, kernel: Kernel, landmarks: np.ndarray, dtype: Any = float) -> "Features":
        """The features of a kernel at landmarks, which differ."""
        inner = kernel(landmarks, landmarks)
        inner[np.diag_indices(len(inner))] += JITTER * np.diag(inner).mean()
        return cls(kernel, landmarks, dtrtri(np.linalg.cholesky(inner), lower=1)[0].T.astype(dtype))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """ψ, shape (n, m)."""
        k = self.kernel(np.asarray(x, float), self.landmarks)
        return k.astype(self.whitening.dtype, copy=False) @ self.whitening

    def maps(self, sums: Sums, w: np.ndarray) -> KernelMaps:
        """The coordinates ψᵀUw as functions of scaled rows."""
        kernel, to_phi = self.kernel, sums.u @ w
        weights = self.whitening @ to_phi
        reach = 0.5 * kernel.additive * np.abs(self.landmarks) @ kernel.lam
        return KernelMaps(
            self.landmarks,
            kernel.log_lam,
            weights,
            (kernel.linear / len(kernel.lam)) * (self.landmarks.T @ weights),
            reach @ weights - sums.mean @ to_phi,
            np.array(kernel.additive),
        )


class Blocks:
    """Rows and their features, block by block; few are computed once and kept."""

    def __init__(self, samples: Samples, features: Features) -> None:
        self.samples, self.features = samples, features
        m = len(features.landmarks)
        self.size = max(1, min(BLOCK_ROWS, KEPT_ELEMENTS // m))
        self.keeps = len(samples) * m <= KEPT_ELEMENTS
        self._kept: dict[int, np.ndarray] = {}
        self._sums: Sums | None = None

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        n = len(self.samples)
        for start in self.samples.devices.share_of(range(0, n, self.size)):
            rows = slice(start, min(start + self.size, n))
            psi = self._kept.get(start)
            if psi is None:
                psi = self._rotated(self.features(self.samples.x[rows]))
                if self.keeps:
                    self._kept[start] = psi
            yield rows, psi

    def rotate(self, sums: Sums) -> None:
        """From now on, give centred features in the basis U."""
        self._sums = sums
        for start, psi in self._kept.items():
            self._kept[start] = self._rotated(psi)

    def coordinates(self, maps: KernelMaps, w: np.ndarray) -> np.ndarray:
        """The values of maps ψᵀUw at all rows, (n, K), in double precision."""
        samples, is_double = self.samples, self.features.whitening.dtype == np.float64
        if self.keeps and is_double and samples.devices.n_processes == 1:
            return np.concatenate([psi @ w for _, psi in self])
        return blockwise(maps.coordinates, samples.x, samples.devices)

    def _rotated(self, psi: np.ndarray) -> np.ndarray:
        if self._sums is None:
            return psi
        return (psi - self._sums.mean.astype(psi.dtype)) @ self._sums.u.astype(psi.dtype)

    def of(
        self, chosen: np.ndarray, groups: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Numbers of chosen rows, which ascend, and their features, block by block.

        With `groups` the rows are sorted by them, and a block has whole groups.
        """
        share_of = self.samples.devices.share_of
        if groups is not None:
            for numbers in share_of(list(_whole_groups(chosen, groups, self.size))):
                yield numbers, self._rotated(self.features(self.samples.x[numbers]))
            return
        for start in share_of(range(0, 0 if self.keeps else len(chosen), self.size)):
            numbers = chosen[start : start + self.size]
            yield numbers, self._rotated(self.features(self.samples.x[numbers]))
        for rows, psi in self if self.keeps else ():
            first, last = np.searchsorted(chosen, [rows.start, rows.stop])
            if first < last:
                numbers = chosen[first:last]
                yield numbers, psi if len(numbers) == len(psi) else psi[numbers - rows.start]


def _whole_groups(chosen: np.ndarray, groups: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """The rows sorted by group, cut between groups into parts of at most so many where possible."""
    chosen = chosen[np.argsort(groups[chosen], kind="stable")]
    ends = [*(np.flatnonzero(np.diff(groups[chosen])) + 1), len(chosen)]
    start = 0
    for end, after in zip(ends, [*ends[1:], np.inf], strict=True):
        if after - start > most:
            yield chosen[start:end]
            start = end


def _sums(psi: np.ndarray, w: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, ...]:
    """Σ w ψψᵀ, Σ w ψ and Σ ψ(wβy)ᵀ of a block, in double precision."""
    mean, t = w @ psi, psi.T @ own.astype(psi.dtype)
    psi = psi if np.all(w == 1) else psi * np.sqrt(w, dtype=psi.dtype)[:, None]
    return tuple(part.astype(float) for part in (psi.T @ psi, mean, t))


def _sums_of_rows(features: Features, _: int, x: np.ndarray, *along: Any) -> tuple[np.ndarray, ...]:
    return _sums(features(x), *along)


def accumulated(blocks: Blocks, labels: Labels) -> Sums:
    """Sums over all rows, one pass."""
    samples, weights = blocks.samples, blocks.samples.weights.astype(float)
    own = labels.boost * weights[:, None] * labels.y
    if is_far(samples.x):
        of_rows: Any = partial(_sums_of_rows, blocks.features)
        h, mean, t = samples.x.summed(of_rows, blocks.size, weights, own)
    else:
        none = _sums(blocks.features(samples.x[:0]), weights[:0], own[:0])
        parts = (_sums(psi, weights[rows], own[rows]) for rows, psi in blocks)
        h, mean, t = added(chain([none], parts))
    total, mass = samples.devices.total, weights.sum()
    h, mean, t = total(h), total(mean) / mass, total(t)
    h -= mass * np.outer(mean, mean)
    t -= np.outer(mean, labels.boost * (weights @ labels.y))
    s, u = np.linalg.eigh(h)
    kept = s > NULL * s[-1]
    s, u = s[kept][::-1], np.ascontiguousarray(u[:, kept][:, ::-1])
    return Sums(s, u, u.T @ t, mean, mass)


# --- rows left out ------------------------------------------------------------------------------


def least_left_out_error(blocks: Blocks, labels: Labels, sums: Sums) -> float:
    """The ridge α of the smallest error of labels left out, over rows spread evenly."""
    errors = np.zeros(len(RIDGES))
    if not labels.y.shape[1]:
        return float(RIDGES[len(RIDGES) // 2])
    for numbers, _, left_out in fits(
        blocks, labels, sums, RIDGES, evenly_spaced(labels, RIDGE_ROWS)
    ):
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


def evenly_spaced(labels: Labels, most: int, all_up_to: int = 0) -> np.ndarray:
    """Labelled rows: all of them up to a number, else about so many, or whole groups, evenly."""
    rows = np.flatnonzero(labels.is_labelled)
    if len(rows) <= max(most, all_up_to):
        return rows
    if labels.groups is None:
        return rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    groups = np.unique(labels.groups[rows])
    step = min(-(-len(rows) // most), max(1, len(groups) // 2))
    return rows[np.isin(labels.groups[rows], groups[::step])]
