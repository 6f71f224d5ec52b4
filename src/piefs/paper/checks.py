"""Checks of the paper's claims: each says what was measured, and whether the claim holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import numpy as np

from piefs.paper.cells import DATASETS, PIEFS, Cell
from piefs.paper.evidence import NOT_RUN, Check, Finding, Found, History, on
from piefs.paper.records import Key, summaries
from piefs.paper.tables import TITLES

STEPS_A_MAP = 3750
ENOUGH_SEEDS = 3


# --- accuracies ------------------------------------------------------------------------------


def versus(
    dataset: str, ours: str, theirs: str, holds: Callable[[float], bool], mode: str = "supervised"
) -> Check:
    """Two methods on a data set, by the difference of their accuracies in points."""

    def check(found: Found) -> Finding:
        other_mode = "unsupervised" if theirs == "neuralef" else mode
        a, b = found.accuracy(dataset, ours, mode), found.accuracy(dataset, theirs, other_mode)
        if a is None or b is None:
            return NOT_RUN
        gap = a.mean - b.mean
        return f"{ours} {a.mean:.2f} %, {theirs} {b.mean:.2f} %: {gap:+.2f} points", holds(gap)

    return check


def at_least(dataset: str, bound: float) -> Check:
    """All three metrics are that accurate."""

    def check(found: Found) -> Finding:
        values = found.of_metrics(dataset, "supervised")
        if not values:
            return NOT_RUN
        names = (method.removeprefix("piefs-") for method in PIEFS)
        text = ", ".join(f"{n} {value:.2f}" for n, value in zip(names, values, strict=True))
        return f"{text} % on test rows", min(values) >= bound

    return check


def off_is_best(mode: str, *datasets: str, slack: float = 0.0) -> Check:
    """`off` is ahead of both learnable metrics, or at most `slack` points behind."""

    def of(found: Found, dataset: str) -> Finding | None:
        values = found.of_metrics(dataset, mode)
        if not values:
            return None
        gap = max(values[1:]) - values[0]
        return f"{gap:+.2f}", gap < slack

    return on(datasets, of, "the better metric against off, points: ")


def metrics_hardly_matter(lowest: float) -> Check:
    """With labels, no metric is a point from another, nor below the lowest, at any Gram error."""

    def of(found: Found, dataset: str) -> Finding | None:
        values = found.of_metrics(dataset, "supervised")
        if not values:
            return None
        errors = [found.gram[dataset, m, "supervised", "paper"].mean for m in PIEFS]
        text = f"{min(values):.1f} to {max(values):.1f} % at {min(errors):.2f} to {max(errors):.2f}"
        return text, max(values) - min(values) <= 1 and min(values) >= lowest

    return on(DATASETS, of, "accuracy of the three metrics, and batch Gram errors: ")


def other_dampenings(found: Found) -> Finding:
    """The rational and the polynomial form are both worse somewhere, in accuracy or Gram error."""
    variants = ("paper", "weighting-rational", "weighting-polynomial")
    parts, is_worse = [], [False, False]
    for dataset in DATASETS:
        accuracy = found.of_variants(dataset, *variants)
        error = found.of_variants(dataset, *variants, found=found.gram)
        if not accuracy or not error:
            continue
        texts = []
        for i in (1, 2):
            gap = accuracy[i] - accuracy[0]
            is_worse[i - 1] |= gap < -0.1 or error[i] > 2 * error[0]
            texts.append(f"{gap:+.2f} points, {error[i]:.2f}")
        parts.append(f"{TITLES[dataset]} {' and '.join(texts)} against {error[0]:.2f}")
    if not parts:
        return NOT_RUN
    text = "rational and polynomial against exponential, with Gram errors: " + "; ".join(parts)
    return text, all(is_worse)


def smoothness_regularises(found: Found, dataset: str) -> Finding | None:
    """The accuracy without the energy is lower than with it."""
    accuracy = found.of_variants(dataset, "paper", "no-smoothness")
    error = found.of_variants(dataset, "paper", "no-smoothness", found=found.gram)
    if not accuracy or not error:
        return None
    gap = accuracy[0] - accuracy[1]
    return f"{gap:+.2f} points, Gram error {error[1]:.2f} → {error[0]:.2f}", gap > 0.1


def gate_protects_gram(found: Found, dataset: str) -> Finding | None:
    """The Gram error is larger with static weights than with dynamic ones."""
    error = found.of_variants(dataset, "no-gate", "paper", found=found.gram)
    return (f"{error[0]:.2f} → {error[1]:.2f}", error[1] < error[0]) if error else None


def laplacian(found: Found) -> Finding:
    """The three settings of the warm start, HTRU2."""
    variants = ("paper", "laplacian-calibrated", "laplacian-frozen")
    values = [found.test.get(("htru2", "piefs-off", "supervised", v)) for v in variants]
    present = [value for value in values if value is not None]
    if len(present) < len(variants):
        return NOT_RUN
    means = [value.mean for value in present]
    spread = max(means) - min(means)
    seeds = [value.n_seeds for value in present]
    numbers = ", ".join(f"{mean:.2f} [{n}]" for mean, n in zip(means, seeds, strict=True))
    text = f"{numbers} %: {spread:.2f} points apart"
    if min(seeds) < ENOUGH_SEEDS:
        return text, None
    return text, spread <= max(v.std for v in present)


# --- training --------------------------------------------------------------------------------


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
    """The residual ends above its lowest value, which it has early."""
    turns = _turns(found.runs(dataset))
    if not turns:
        return None
    ends = [float(np.mean([rows[-1]["gram_residual"] for rows in seeds])) for seeds in turns]
    return f"{min(ends):.2f} → {ends[-1]:.2f}", ends[-1] > 1.1 * min(ends)


def smoothness_comes_last(found: Found, dataset: str) -> Finding | None:
    """The weight of the energy is larger at the end of the last map than when the first began."""
    turns = _turns(found.runs(dataset))
    if not turns:
        return None
    rows = (turns[0], 0), (turns[0], -1), (turns[-1], -1)
    means = [float(np.mean([seed[i]["w_mde"] for seed in seeds])) for seeds, i in rows]
    return " → ".join(f"{mean:.2f}" for mean in means), means[-1] > means[0]


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


# --- orthogonality -----------------------------------------------------------------------------


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


# --- without labels ----------------------------------------------------------------------------


def lower_gram_without_labels(found: Found, dataset: str) -> Finding | None:
    """Both learnable metrics have lower Gram errors than `off`."""
    keys: list[Key] = [(dataset, method, "unsupervised", "paper") for method in PIEFS]
    if not all(key in found.gram for key in keys):
        return None
    off, *others = (found.gram[key].mean for key in keys)
    return f"{off:.2f} → {max(others):.2f}", max(others) < off


def matches_neuralef(found: Found) -> Finding:
    """Without labels `off` is level with NeuralEF or ahead, on four of five sets."""
    gaps = {}
    for dataset in DATASETS:
        ours = found.accuracy(dataset, "piefs-off", "unsupervised")
        theirs = found.accuracy(dataset, "neuralef", "unsupervised")
        if ours and theirs:
            gaps[dataset] = ours.mean - theirs.mean
    if not gaps:
        return NOT_RUN
    text = "points ahead: " + ", ".join(f"{TITLES[d]} {gap:+.1f}" for d, gap in gaps.items())
    n_behind = sum(gap < -0.1 for gap in gaps.values())
    if n_behind > 1:
        return text, False
    return text, True if len(gaps) == len(DATASETS) else None


def penalty_restores(found: Found, dataset: str) -> Finding | None:
    """A penalty on log λ brings metrics that are behind `off` nearer to it."""
    plain = found.of_metrics(dataset, "unsupervised")
    keys: list[Key] = [(dataset, m, "unsupervised", "anisotropy") for m in PIEFS[1:]]
    if not plain or not all(key in found.test for key in keys):
        return None
    off, *values = plain
    pairs = [(a, found.test[key].mean) for a, key in zip(values, keys, strict=True)]
    text = " and ".join(f"{a - off:+.1f} → {b - off:+.1f}" for a, b in pairs)
    behind = [(a, b) for a, b in pairs if a < off]
    if not behind:
        return f"{text} (not behind off)", None
    return text, all(b > a for a, b in behind)


def _widest(found: Found, mode: str, dataset: str | None = None) -> float | None:
    """The widest range of log λ of a learnable metric, over rows and columns."""
    ranges = [
        high - low
        for record in found.every
        if record.cell.mode == mode and record.cell.method in PIEFS[1:]
        if record.cell.variant == "paper" and dataset in (None, record.cell.dataset)
        for low, high in record.metrics["log_scale_ranges"]
    ]
    return max(ranges, default=None)


def log_scales(found: Found) -> Finding:
    """How far log λ spans without labels."""
    widest = _widest(found, "unsupervised")
    if widest is None:
        return NOT_RUN
    return f"log λ spans up to {widest:.1f} over rows and columns", 3 <= widest <= 5


def labels_hold_scales(found: Found, dataset: str) -> Finding | None:
    """log λ spans further without labels than with them."""
    with_labels, without = (_widest(found, m, dataset) for m in ("supervised", "unsupervised"))
    if with_labels is None or without is None:
        return None
    return f"{with_labels:.1f} and {without:.1f}", without > with_labels
