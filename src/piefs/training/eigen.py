"""The solver in closed form: the paper's three losses as one generalised eigenproblem.

Over features ψ of a kernel that carries the metric (`core.kernel`), coordinates φ_k = w_kᵀψ solve

    [(1 − τ) TTᵀ + τG] w = ρ (G + αR) w

with G = E ψψᵀ (orthonormality), T = E ψyᵀ (what a linear readout explains), R the identity of
whitened features (energy). A triangular factor makes them orthonormal and keeps every prefix. α
has the least leave-one-out error; the rows' coordinates as if each had been left out are free, and
the readout is fitted on those. Sums over rows are taken block by block. NumPy and SciPy alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from piefs.core.kernel import RIDGES, Kernel, KernelMaps, learned, typical_distance
from piefs.core.model import Model, Readout
from piefs.core.ritz import leading_of_diagonal_and_rank
from piefs.data.rows import scratch
from piefs.training.batches import Samples, Validation
from piefs.training.config import Settings
from piefs.training.diagnosis import loss_by_chance
from piefs.training.evaluation import weighted_gram
from piefs.training.labels import Labels, within_reach
from piefs.training.readout import check_readable, fewest_within_error, solved_readout
from piefs.training.solvers import Fitted, Task

TAU = 1e-3
"""Weight of plain variance beside what the readout explains: it orders coordinates past rank T."""

METRIC_ROWS, METRIC_ELEMENTS = 500, 2**26
"""Rows that the metric is learned on, and the most differences of two of them."""

LANDMARKS = 1500
BLOCK_ROWS = 8192
KEPT_ELEMENTS = 2**25  # of features in memory at a time
RIDGE_ROWS, READOUT_ROWS, LEFT_OUT_ROWS = 4000, 20_000, 50_000
"""Rows that choose α, that fit the readout, and up to which all are left out in turn."""

JITTER, NULL = 1e-6, 1e-8

MOST_LEVERAGE = 1 - 1e-6


def solve(
    samples: Samples,
    settings: Settings,
    task: Task,
    *,
    validation: Validation | None = None,
    callbacks: Sequence[Any] = (),
    warm_start: Model | None = None,
) -> Fitted:
    """Learn the metric, then solve for all coordinates at once."""
    check_readable(samples)
    labels = Labels.of(samples, task)
    features = Features.of(samples, labels, settings)
    sums = features.sums(samples, labels)
    alpha = least_left_out_error(features, sums, samples, labels)
    w, mixing = leading(sums, alpha, settings.n_components, labels.scale)
    phi, chosen, left_out = features.coordinates(samples, labels, sums, alpha, w, mixing)
    labelled = samples.take(chosen)
    readout = _readout(left_out[chosen], labelled, task)
    if settings.chooses_n_components:
        readout = _of_fewest(left_out[chosen], labelled, task)
        w = w[:, : readout.weights.shape[1]]
    k = w.shape[1]
    maps = features.maps(sums, w)
    lam = features.kernel.log_lam
    energies = w.T @ w
    all_left_out = labels.y.shape[1] > 0 and len(chosen) == np.count_nonzero(labels.is_labelled)
    return Fitted(
        Model(None, maps, np.eye(k), None, readout),
        replace(settings, n_components=k),
        phi[:, :k],
        weighted_gram(phi[:, :k], samples.weights, samples.devices),
        energies,
        np.diag(energies).copy(),
        np.tile([-lam.max(), -lam.min()], (k, 1)),
        left_out=left_out[:, :k] if all_left_out else None,
    )


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
    factor: np.ndarray

    @classmethod
    def of(cls, samples: Samples, rows: Labels, settings: Settings) -> Features:
        """The kernel of the best evidence, and landmarks among the rows."""
        draw = np.random.default_rng(settings.seed)
        kernel = _kernel(samples, rows, settings, draw)
        n, counts = len(samples), samples.weights > 0
        some = draw.permutation(np.flatnonzero(counts) if not counts.all() else n)
        distinct = np.unique(_at(samples, np.sort(some[: 2 * LANDMARKS])), axis=0)
        landmarks = distinct[draw.permutation(len(distinct))[:LANDMARKS]]
        inner = kernel(landmarks, landmarks)
        inner[np.diag_indices(len(inner))] += JITTER * np.diag(inner).mean()
        return cls(kernel, landmarks, la.cholesky(inner, lower=True, check_finite=False))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """ψ, shape (n, m)."""
        k = self.kernel(np.asarray(x, float), self.landmarks)
        return la.solve_triangular(
            self.factor, k.T, lower=True, overwrite_b=True, check_finite=False
        ).T

    def blocks(self, samples: Samples) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows and their features, block by block."""
        size = max(1, min(BLOCK_ROWS, KEPT_ELEMENTS // len(self.landmarks)))
        for start in samples.devices.share_of(range(0, len(samples), size)):
            rows = slice(start, min(start + size, len(samples)))
            yield rows, self(samples.x[rows])

    def sums(self, samples: Samples, labels: Labels) -> Sums:
        """Sums over all rows, one pass."""
        m, weights = len(self.landmarks), samples.weights.astype(float)
        h, mean = np.zeros((m, m)), np.zeros(m)
        t = np.zeros((m, labels.y.shape[1]))
        for rows, psi in self.blocks(samples):
            w = weights[rows]
            mean += w @ psi
            t += psi.T @ (labels.boost * w[:, None] * labels.y[rows])
            psi *= np.sqrt(w)[:, None]
            h += psi.T @ psi
        total, mass = samples.devices.total, weights.sum()
        h, mean, t = total(h), total(mean) / mass, total(t)
        h -= mass * np.outer(mean, mean)
        t -= np.outer(mean, labels.boost * (weights @ labels.y))
        s, u = la.eigh(h, driver="evd", overwrite_a=True, check_finite=False)
        kept = s > NULL * s[-1]
        s, u = s[kept][::-1], u[:, kept][:, ::-1]
        return Sums(s, u, u.T @ t, mean, mass)

    def coordinates(
        self,
        samples: Samples,
        labels: Labels,
        sums: Sums,
        alpha: float,
        w: np.ndarray,
        mixing: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Φ of all rows; the rows to fit the readout on, and Φ as if each had been left out."""
        n, k = len(samples), w.shape[1]
        phi, left_out = scratch((n, k), float), scratch((n, k), float)
        chosen = _spread(labels.is_labelled, LEFT_OUT_ROWS, READOUT_ROWS)
        is_chosen = np.zeros(n, bool)
        is_chosen[chosen] = True
        root = sums.u / np.sqrt(sums.s + alpha)
        ridge, to_phi = sums.u @ (sums.t / (sums.s + alpha)[:, None]), sums.u @ w
        for rows, psi in self.blocks(samples):
            psi -= sums.mean
            left_out[rows] = phi[rows] = psi @ to_phi
            held = np.flatnonzero(is_chosen[rows]) if len(mixing) else []
            if len(held):
                psi, numbers = psi[held], held + rows.start
                q, fit = np.sum((psi @ root) ** 2, axis=1) + 1 / sums.mass, psi @ ridge
                memorised = fit - left_out_fit(fit, q, samples, labels, numbers)
                # Coordinates have no offset: what the other rows' mean moves is not theirs.
                w_held = samples.weights[numbers].astype(float)[:, None]
                memorised -= w_held * labels.boost * labels.y[numbers] / (sums.mass - w_held)
                left_out[numbers] -= (memorised * labels.scale) @ mixing
        total = samples.devices.total
        return total(phi), chosen, total(left_out)

    def maps(self, sums: Sums, w: np.ndarray) -> KernelMaps:
        """The coordinates ψᵀUw as functions of scaled rows."""
        kernel, to_phi = self.kernel, sums.u @ w
        weights = la.solve_triangular(self.factor, to_phi, lower=True, trans=1)
        reach = 0.5 * kernel.additive * np.abs(self.landmarks) @ kernel.lam
        return KernelMaps(
            self.landmarks,
            kernel.log_lam,
            weights,
            (kernel.linear / len(kernel.lam)) * (self.landmarks.T @ weights),
            reach @ weights - sums.mean @ to_phi,
            np.array(kernel.additive),
        )


def _kernel(samples: Samples, rows: Labels, settings: Settings, draw: Any) -> Kernel:
    """The kernel that the labels of some rows choose; without labels, of their distances alone."""
    d = samples.x.shape[1]
    labelled = np.flatnonzero(rows.is_labelled & (samples.weights > 0))
    most = min(METRIC_ROWS, max(20, int(np.sqrt(2 * METRIC_ELEMENTS / d))))
    some = np.sort(draw.permutation(labelled)[:most])
    x = _at(samples, some)
    if not rows.y.shape[1]:
        return Kernel(np.full(d, -np.log(typical_distance(x))))
    y, weight = rows.y[some], samples.weights[some].astype(float)
    weight = weight / weight.mean()
    equal = settings.metric.name == "off"
    return learned(x, y - y.mean(axis=0), weight, rows.n_outputs, equal=equal)[0]


def _at(samples: Samples, rows: np.ndarray) -> np.ndarray:
    return np.asarray(samples.x[rows], float)


def _spread(is_labelled: np.ndarray, all_up_to: int, most: int) -> np.ndarray:
    """Labelled rows: all of them up to a number, and else so many, spread evenly."""
    rows = np.flatnonzero(is_labelled)
    if len(rows) <= all_up_to:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def left_out_fit(
    fit: np.ndarray, q: np.ndarray, samples: Samples, labels: Labels, rows: np.ndarray
) -> np.ndarray:
    """What a ridge regression says of rows if each is left out: (f − wqβy)/(1 − wq), exactly.

    q = ψᵀ(H + α)⁻¹ψ, by the formula of Sherman and Morrison.
    """
    leverage = np.minimum(samples.weights[rows].astype(float) * q, MOST_LEVERAGE)[:, None]
    return (fit - leverage * labels.boost * labels.y[rows]) / (1 - leverage)


def least_left_out_error(features: Features, sums: Sums, samples: Samples, labels: Labels) -> float:
    """The ridge α of the smallest leave-one-out error of the labels, over rows spread evenly."""
    if not labels.y.shape[1]:
        return float(RIDGES[len(RIDGES) // 2])
    rows = _spread(labels.is_labelled, RIDGE_ROWS, RIDGE_ROWS)
    p = (features(_at(samples, rows)) - sums.mean) @ sums.u
    weight, squares = samples.weights[rows].astype(float), p**2
    errors = []
    for alpha in RIDGES:
        q = squares @ (1 / (sums.s + alpha)) + 1 / sums.mass
        fit = p @ (sums.t / (sums.s + alpha)[:, None])
        wrong = labels.y[rows] - left_out_fit(fit, q, samples, labels, rows)
        errors.append(float(weight @ np.sum(wrong**2, axis=1)))
    return float(RIDGES[int(np.argmin(errors))])


def leading(sums: Sums, alpha: float, n: int, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The n leading solutions w in the basis U, orthonormal on the rows in their order, (m, n).

    With them the mixing (C, n) of ridge fits in their label part, (1 − τ)Tᵀw/ρ.
    """
    g, b = sums.s / sums.mass, (sums.s + alpha) / sums.mass
    t, root = sums.t * scale / sums.mass, np.sqrt(b)[:, None]
    rho, v = leading_of_diagonal_and_rank(TAU * g / b, np.sqrt(1 - TAU) * t / root, n)
    w = v / root
    w *= _signs(t.T @ w if t.shape[1] else w)
    factor = la.cholesky(w.T @ (g[:, None] * w), lower=True)
    orthonormal = la.solve_triangular(factor, np.eye(len(factor)), lower=True).T
    return w @ orthonormal, ((1 - TAU) / rho * (t.T @ w)) @ orthonormal


def _signs(columns: np.ndarray) -> np.ndarray:
    """Signs that make each column's largest entry positive."""
    largest = np.abs(columns).argmax(axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def _readout(left_out: np.ndarray, labelled: Samples, task: Task) -> Readout:
    """The linear readout of coordinates as if their rows had been left out: it is calibrated."""
    if not task.n_outputs:
        return Readout(np.zeros((0, left_out.shape[1])), np.zeros(0))
    if task.kind == "regression":
        labelled = replace(labelled, target=within_reach(labelled.targets))
    return solved_readout(left_out, labelled, task.n_outputs)


def _of_fewest(left_out: np.ndarray, labelled: Samples, task: Task) -> Readout:
    """The readout of the fewest coordinates within an error of the least leave-one-out loss."""
    numbers = range(1, left_out.shape[1] + 1)
    readouts = [_readout(left_out[:, :k], labelled, task) for k in numbers]
    losses = [
        task.losses(readout(left_out[:, :k]), labelled.targets)
        for k, readout in zip(numbers, readouts, strict=True)
    ]
    least = fewest_within_error(np.stack(losses, axis=1), loss_by_chance(labelled) or 0.0)
    return readouts[least - 1]
