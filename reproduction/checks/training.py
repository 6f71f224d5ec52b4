"""Claims about the course of training, and about Gram matrices."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from reproduction.cells import Cell
from reproduction.checks import NOT_RUN, Finding, Found, History
from reproduction.records import summaries

STEPS_A_MAP = 3750


def _accuracy_after(runs: list[History], step: int) -> float:
    """Mean validation accuracy in per cent of the last row up to a step."""
    rows = [max((r for r in run if r["step"] <= step), key=lambda r: r["step"]) for run in runs]
    return 100 * float(np.mean([row["validation_accuracy"] for row in rows]))


def first_four(found: Found) -> Finding:
    """What the first four maps reach on MNIST, and what the others add."""
    runs = found.runs("mnist")
    if not runs:
        return NOT_RUN
    early = _accuracy_after(runs, 4 * STEPS_A_MAP)
    gain = _accuracy_after(runs, 10**9) - early
    text = f"{early:.1f} % after four maps, {gain:+.1f} points by the other twelve"
    return f"{text} ({len(runs)} seeds)", abs(early - 94.5) < 0.5 and gain < 1


def converged(found: Found, dataset: str) -> Finding | None:
    """Little changes after step 15,000, with any seed."""
    changes = []
    for run in found.runs(dataset):
        late = [100 * r["validation_accuracy"] for r in run if r["step"] >= 4 * STEPS_A_MAP]
        if late:
            changes.append(max((value - late[0] for value in late), key=abs))
    if not changes:
        return None
    largest = max(changes, key=abs)
    return f"{largest:+.2f}", abs(largest) <= 0.5


def _turns(runs: list[History]) -> list[list[History]]:
    """The rows of each map's training, map by map, seed by seed."""
    by_run = [[list(rows) for _, rows in groupby(run, lambda row: row["map"])] for run in runs]
    return [list(turns) for turns in zip(*by_run, strict=True)]


def residual_rises(found: Found, dataset: str) -> Finding | None:
    """In a tenth of the maps, or more, the residual ends a tenth above its lowest, had earlier.

    Within a map: from one to the next the residual grows by sampling noise alone, as √(k(k−1)/B).
    """
    turns = [rows for seeds in _turns(found.runs(dataset)) for rows in seeds]
    if not turns:
        return None
    residuals = [[row["gram_residual"] for row in rows] for rows in turns]
    n_risen = sum(values[-1] > 1.1 * min(values) for values in residuals)
    return f"{n_risen} of {len(turns)}", n_risen >= 0.1 * len(turns)


def smoothness_waits(found: Found, dataset: str) -> Finding | None:
    """The weight of the energy is larger at the end of the first map than when it began."""
    turns = _turns(found.runs(dataset))
    if not turns:
        return None
    rows = (turns[0], 0), (turns[0], -1), (turns[-1], -1)
    means = [float(np.mean([seed[i]["w_mde"] for seed in seeds])) for seeds, i in rows]
    return " → ".join(f"{mean:.2f}" for mean in means), means[1] > means[0]


def energies_rise(found: Found, dataset: str) -> Finding | None:
    """Later maps have larger energies: rank correlation of energy and order, a mean over seeds."""
    every = found.energies(dataset)
    if not every:
        return None
    correlations = []
    for energies in every:
        ranks = np.argsort(np.argsort(energies))
        correlations.append(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
    return f"{np.mean(correlations):+.2f}", bool(np.mean(correlations) > 0.5)


def gram_figure(found: Found) -> Finding:
    """C_K − I of the first ten maps on MNIST's validation rows, seed 0."""
    cell = Cell("mnist", "piefs-off", "supervised", "paper", 0)
    metrics = found.records.load(cell).metrics if found.records.has(cell) else {}
    if "gram_matrix" not in metrics:
        return NOT_RUN
    matrix = np.array(metrics["gram_matrix"]["validation"])[:10, :10]
    rest = matrix - np.eye(len(matrix))
    norm, largest = np.linalg.norm(rest), np.abs(rest).max()
    holds = abs(norm - 0.23) < 0.05 and abs(largest - 0.09) < 0.05
    return f"norm {norm:.2f}, largest entry {largest:.2f}", bool(holds)


def gap_falls_with_batch(found: Found) -> Finding:
    """The batch's Gram error exceeds the population's by O(1/B)."""
    sizes = {"batch-256": 256, "batch-1024": 1024, "paper": 2048, "batch-4096": 4096}
    population = summaries(found.every, "gram_error_unbiased", "train", 1.0)
    gaps = {}
    for variant, size in sizes.items():
        key = ("mnist", "piefs-off", "supervised", variant)
        if key in population and key in found.gram:
            gaps[size] = size * (found.gram[key].mean - population[key].mean)
    if len(gaps) < len(sizes):
        return NOT_RUN
    text = ", ".join(f"{size}: {gap:.0f}" for size, gap in gaps.items())
    return f"B × gap on MNIST, by B: {text}", max(gaps.values()) < 2 * min(gaps.values())
