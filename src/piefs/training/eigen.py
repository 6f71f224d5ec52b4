"""The solver in closed form: the paper's three losses as one generalised eigenproblem.

Over features ψ of a kernel that carries the metric (`core.kernel`), coordinates φ_k = w_kᵀψ solve

    [(1 − τ) TTᵀ + τG] w = ρ (G + αR) w

with G = E ψψᵀ (orthonormality), T = E ψyᵀ (what a linear readout explains), R the identity of
whitened features (energy). A triangular factor makes them orthonormal and keeps every prefix. α
has the least leave-one-out error; the rows' coordinates as if each had been left out are free, and
the readout is fitted on those. Sums over rows are taken block by block. No JAX.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from piefs.core.kernel import STEPS, Kernel, KernelMaps, learned, typical_distance
from piefs.core.model import Model, Readout
from piefs.core.ritz import leading_of_diagonal_and_rank, whitening
from piefs.errors import InputError
from piefs.training.batches import Samples, Validation
from piefs.training.config import Settings
from piefs.training.diagnosis import loss_by_chance
from piefs.training.evaluation import weighted_gram
from piefs.training.features import (
    LEFT_OUT_ROWS,
    READOUT_ROWS,
    RIDGE_ROWS,
    Blocks,
    Features,
    Sums,
    accumulated,
    evenly_spaced,
    least_left_out_error,
    without_own_label,
)
from piefs.training.labels import Labels, standardized, within_reach
from piefs.training.readout import (
    are_counts,
    check_readable,
    fewest_within_error,
    log_deviations,
    solved_readout,
)
from piefs.training.solvers import Fitted, Task

TAU = 1e-3
"""Weight of plain variance beside what the readout explains: it orders coordinates past rank T."""

METRIC_ROWS, MORE_METRIC_ROWS, METRIC_ELEMENTS = 500, 700, 2**26
"""Rows that the metric is learned on, and the most differences of two of them."""

ROWS_IN_DOUBLE, ROWS_FOR_MORE, MANY_ROWS = 3000, 5000, 100_000
"""Beyond the first, features are in single precision; beyond the second, and for landmarks up to
the third, where they would take too long, there are more landmarks and rows for the metric."""

LANDMARKS, MORE_LANDMARKS = 1500, 2000
COSTS = (0.08, 0.37e-9, 0.07e-9, 0.12e-9, 0.32e-9, 0.0225e-9)
"""Seconds of a fit on two cores of 75 GFLOP/s: in all, and an operation of each kind."""
FOLLOWS = 0.1  # a label: the least correlation


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
    if len(samples) < 2:
        raise InputError("n_samples=1: two rows at least are needed")
    samples = _weighed(samples)
    labels, draw = Labels.of(samples, task), np.random.default_rng(settings.seed)
    kernel = _kernel(samples, labels, settings, draw)
    dtype = np.float64 if len(samples) <= ROWS_IN_DOUBLE else np.float32
    features = Features.of(kernel, _landmarks(samples, draw), dtype)
    blocks = Blocks(samples, features)
    sums = accumulated(blocks, labels)
    blocks.rotate(sums)
    alpha = least_left_out_error(blocks, labels, sums)
    w, label_mixing = leading(sums, alpha, settings.n_components, labels.scale)
    maps = features.maps(sums, w)
    maps, phi, triangle = orthonormal(maps, blocks.coordinates(maps, w), samples, labels)
    chosen = evenly_spaced(labels, READOUT_ROWS, LEFT_OUT_ROWS)
    left_out, read = phi.copy(), samples.take(chosen)
    if len(label_mixing):
        own = without_own_label(blocks, labels, sums, alpha, chosen)
        left_out[chosen] -= (own * labels.scale) @ label_mixing @ triangle
    readout, deviations = _readout(left_out[chosen], read, task), None
    if settings.chooses_n_components:
        readout = _of_fewest(left_out[chosen], read, task)
    k = readout.weights.shape[1]
    w, phi, left_out = (w @ triangle)[:, :k], phi[:, :k], left_out[:, :k]
    if task.kind == "regression":
        deviations = log_deviations(left_out[chosen], readout, read)
    is_whole = len(label_mixing) > 0 and len(chosen) == np.count_nonzero(labels.is_labelled)
    energies, log_lam = w.T @ w, kernel.log_lam
    return Fitted(
        Model(None, maps.leading(k), np.eye(k), None, readout, spread=deviations),
        replace(settings, n_components=k),
        phi,
        weighted_gram(phi, samples.weights, samples.devices),
        energies,
        np.diag(energies).copy(),
        np.tile([-log_lam.max(), -log_lam.min()], (k, 1)),
        left_out=left_out if is_whole else None,
    )


def expected_seconds(n: int, d: int) -> float:
    """How long a fit of n rows of d columns takes on two common cores, by those of LOG.md."""
    rows = METRIC_ROWS if n <= ROWS_FOR_MORE else MORE_METRIC_ROWS
    r = min(n, rows, max(20, int(np.sqrt(2 * METRIC_ELEMENTS / d))))
    m = min(n, MORE_LANDMARKS if ROWS_FOR_MORE < n <= MANY_ROWS else LANDMARKS)
    kinds = (1, STEPS * r**2 * d, STEPS * r**3, m**3, n * m * d, n * m**2)
    return float(np.dot(COSTS, kinds))


def orthonormal(
    maps: KernelMaps, phi: np.ndarray, samples: Samples, labels: Labels
) -> tuple[KernelMaps, np.ndarray, np.ndarray]:
    """The maps made orthonormal on all rows, their values (n, K), and what they were mixed by."""
    weights = samples.weights
    mean = np.average(phi, axis=0, weights=weights)
    phi = phi - mean
    triangle = whitening(weighted_gram(phi, weights, samples.devices)).mixing.T
    phi = phi @ triangle
    sign = signs(phi, samples, labels)
    return maps.mixed(mean, triangle * sign), phi * sign, triangle * sign


def _kernel(samples: Samples, labels: Labels, settings: Settings, draw: Any) -> Kernel:
    """The kernel that the labels of some rows choose; without labels, of their distances alone."""
    d = samples.x.shape[1]
    labelled = np.flatnonzero(labels.is_labelled & (samples.weights > 0))
    n_rows = METRIC_ROWS if len(samples) <= ROWS_FOR_MORE else MORE_METRIC_ROWS
    most = min(n_rows, max(20, int(np.sqrt(2 * METRIC_ELEMENTS / d))))
    some = labelled
    if len(labelled) > ROWS_FOR_MORE:
        some = np.sort(draw.permutation(labelled)[:most])
    x, y, weight = _at(samples, some), labels.y[some], samples.weights[some].astype(float)
    _, first, place = np.unique(np.hstack([x, y]), axis=0, return_index=True, return_inverse=True)
    x, y, weight = x[first], y[first], np.bincount(place.ravel(), weight)  # equal rows are one
    some = draw.permutation(len(x))[:most]
    x, y, weight = x[some], y[some], weight[some]
    if not y.shape[1]:
        return Kernel(np.full(d, -np.log(typical_distance(x))))
    equal = settings.metric.name == "off"
    y = y - np.average(y, axis=0, weights=weight)
    return learned(x, y, weight, labels.evidence_columns, equal=equal)


def _weighed(samples: Samples) -> Samples:
    """Weights that count equal rows as they are, others with a mean of one."""

    def mean_one(weight: np.ndarray | None) -> np.ndarray | None:
        if weight is None or are_counts(weight):
            return weight
        return weight / weight[weight > 0].mean(dtype=float)

    weight, label_weight = mean_one(samples.weight), mean_one(samples.label_weight)
    return replace(samples, weight=weight, label_weight=label_weight)


def _landmarks(samples: Samples, draw: Any) -> np.ndarray:
    """Rows at random, all of them different: equal ones make k(Z, Z) singular."""
    affords_more = ROWS_FOR_MORE < len(samples) <= MANY_ROWS
    most = MORE_LANDMARKS if affords_more else LANDMARKS
    some = np.flatnonzero(samples.weights > 0)
    if len(some) > 2 * most:
        some = np.sort(draw.permutation(some)[: 2 * most])
    distinct = np.unique(_at(samples, some), axis=0)
    return distinct[draw.permutation(len(distinct))[:most]]


def _at(samples: Samples, rows: np.ndarray) -> np.ndarray:
    return np.asarray(samples.x[rows], float)


def leading(sums: Sums, alpha: float, n: int, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The n leading solutions w in the basis U, (m, n).

    With them the mixing (C, n) of ridge fits in their label part, (1 − τ)Tᵀw/ρ.
    """
    g, b = sums.s / sums.mass, (sums.s + alpha) / sums.mass
    t, root = sums.t * scale / sums.mass, np.sqrt(b)[:, None]
    rho, v = leading_of_diagonal_and_rank(TAU * g / b, np.sqrt(1 - TAU) * t / root, n)
    w = v / root
    return w, (1 - TAU) / rho * (t.T @ w)


def signs(phi: np.ndarray, samples: Samples, labels: Labels) -> np.ndarray:
    """Signs by which each coordinate grows with the label, or else the input, it follows most.

    Of two classes it is the second.
    """
    rows = evenly_spaced(labels, RIDGE_ROWS)
    weight = samples.weights[rows].astype(float)
    phi, x = phi[rows] * (weight / weight.sum())[:, None], _at(samples, rows)
    y, x = labels.y[rows] * labels.scale, standardized(x, weight / weight.sum())
    none = np.zeros((phi.shape[1], 1))
    by_label, by_input = np.hstack([phi.T @ y, none]), phi.T @ x
    by_label *= 1 + 1e-6 * np.arange(by_label.shape[1])  # of two equal ones the second
    is_followed = np.abs(by_label).max(axis=1) > FOLLOWS
    slopes = np.where(is_followed, _furthest(by_label), _furthest(by_input))
    return np.where(slopes < 0, -1.0, 1.0)


def _furthest(rows: np.ndarray) -> np.ndarray:
    """Each row's entry that is furthest from zero."""
    return np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)[:, 0]


def _readout(left_out: np.ndarray, labelled: Samples, task: Task) -> Readout:
    """The linear readout of coordinates as if their rows had been left out: it is calibrated."""
    if not task.n_outputs:
        return Readout(np.zeros((0, left_out.shape[1])), np.zeros(0))
    if task.kind == "regression":
        mass = labelled.label_weights.astype(float)
        labelled = replace(labelled, target=within_reach(labelled.targets, mass))
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
