"""What the paper's claims ask of the records: what was measured, and whether the claim holds.

A check is a function of the records. None for the verdict means that the runs it needs are not
there yet. Where a claim is about all data sets, it is judged on those that have been run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

import numpy as np

from piefs.paper.cells import DATASETS, LOW_DIMENSIONAL, PIEFS, Cell
from piefs.paper.records import Key, Records, Summary, summaries
from piefs.paper.tables import TITLES

Finding = tuple[str, bool | None]
History = list[dict[str, float]]
STEPS_A_MAP = 3750
NOT_RUN: Finding = ("not run yet", None)


class Found:
    """The records, as the checks want them."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.every = list(records)
        self.test = summaries(self.every)
        self.gram = summaries(self.every, "gram_error_batch", "", 1.0)

    def accuracy(self, dataset: str, method: str, mode: str = "supervised") -> Summary | None:
        """Test accuracy in per cent with the settings of the paper."""
        return self.test.get((dataset, method, mode, "paper"))

    def of_metrics(self, dataset: str, mode: str, variant: str = "paper") -> list[Summary]:
        """Test accuracies with `off`, `diag` and `trotter`, if all are there."""
        keys: list[Key] = [(dataset, method, mode, variant) for method in PIEFS]
        return [self.test[key] for key in keys] if all(key in self.test for key in keys) else []

    def runs(self, dataset: str) -> list[History]:
        """What was recorded while `off` was trained, seed by seed."""
        cells = [Cell(dataset, "piefs-off", "supervised", "paper", seed) for seed in range(5)]
        return [h for r in self.records.of(cells) if (h := r.history())]


Check = Callable[[Found], Finding]
Part = tuple[str, bool]


def _together(
    parts: Iterable[tuple[str, Part | None]],
    before: str = "",
    judge: Callable[[Iterable[bool]], bool] = all,
) -> Finding:
    """One finding of those of several data sets; what has not been run is left out."""
    measured = [(f"{TITLES[dataset]} {part[0]}", part[1]) for dataset, part in parts if part]
    if not measured:
        return NOT_RUN
    return before + ", ".join(text for text, _ in measured), judge(ok for _, ok in measured)


def known(text: str) -> Check:
    """A claim that is an identity, for which no run is needed."""
    return lambda found: (text, True)


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
        text = ", ".join(f"{n} {s.mean:.2f}" for n, s in zip(names, values, strict=True))
        return f"{text} % on test rows", all(s.mean >= bound for s in values)

    return check


def off_is_best(mode: str, *datasets: str) -> Check:
    """`off` is ahead of both learnable metrics."""

    def of(found: Found, dataset: str) -> Part | None:
        values = [value.mean for value in found.of_metrics(dataset, mode)]
        if not values:
            return None
        gap = max(values[1:]) - values[0]
        return f"{gap:+.2f}", gap < 0

    before = "the better metric against off, points: "
    return lambda found: _together(((d, of(found, d)) for d in datasets), before)


def metrics_hardly_matter(found: Found) -> Finding:
    """With labels, no metric is a point from another, whatever the Gram errors."""

    def of(dataset: str) -> Part | None:
        values = [value.mean for value in found.of_metrics(dataset, "supervised")]
        if not values:
            return None
        errors = [found.gram[dataset, m, "supervised", "paper"].mean for m in PIEFS]
        text = f"{np.ptp(values):.2f} (Gram errors {min(errors):.2f} to {max(errors):.2f})"
        return text, bool(np.ptp(values) <= 1)

    before = "points between the best and the worst metric: "
    return _together(((d, of(d)) for d in DATASETS), before)


def other_dampenings(found: Found) -> Finding:
    """The rational and the polynomial form are not ahead of the exponential one."""

    def of(dataset: str) -> Part | None:
        variants = ("paper", "weighting-rational", "weighting-polynomial")
        values = [found.test.get((dataset, "piefs-off", "supervised", v)) for v in variants]
        means = [value.mean for value in values if value is not None]
        if len(means) < len(variants):
            return None
        gaps = [mean - means[0] for mean in means[1:]]
        return f"{gaps[0]:+.2f} and {gaps[1]:+.2f}", max(gaps) < -0.1

    before = "rational and polynomial against exponential, points: "
    return _together(((d, of(d)) for d in DATASETS), before)


def laplacian(found: Found) -> Finding:
    """The three settings of the warm start, HTRU2."""
    variants = ("paper", "laplacian-calibrated", "laplacian-frozen")
    values = [found.test.get(("htru2", "piefs-off", "supervised", v)) for v in variants]
    present = [value for value in values if value is not None]
    if len(present) < len(variants):
        return NOT_RUN
    means = [value.mean for value in present]
    spread = max(means) - min(means)
    text = ", ".join(f"{mean:.2f}" for mean in means)
    return f"{text} %: {spread:.2f} points apart", spread <= max(v.std for v in present)


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


def converged(found: Found) -> Finding:
    """Little is gained after step 15,000."""

    def of(dataset: str) -> Part | None:
        if not (runs := found.runs(dataset)):
            return None
        late = _accuracy_after(runs, 10**9) - _accuracy_after(runs, 15_000)
        return f"{late:+.2f}", abs(late) <= 0.5

    return _together(((d, of(d)) for d in DATASETS), "points gained after step 15,000: ")


def _turns(runs: list[History]) -> list[History]:
    """The rows of each map's training."""
    return [list(rows) for run in runs for _, rows in groupby(run, lambda row: row["map"])]


def residual_rises(found: Found) -> Finding:
    """Within the training of a map, the residual ends above its lowest value."""

    def of(dataset: str) -> Part | None:
        turns = [[row["gram_residual"] for row in rows] for rows in _turns(found.runs(dataset))]
        if not turns:
            return None
        share = float(np.mean([residuals[-1] > 1.1 * min(residuals) for residuals in turns]))
        return f"{share:.0%}", share > 0

    before = "maps whose residual ends more than a tenth above its lowest: "
    return _together(((d, of(d)) for d in DATASETS), before, any)


def smoothness_comes_last(found: Found) -> Finding:
    """The weight of the energy grows while a map is trained."""

    def of(dataset: str) -> Part | None:
        turns = [[row["w_mde"] for row in rows] for rows in _turns(found.runs(dataset))]
        if not turns:
            return None
        early, late = (float(np.mean([weights[i] for weights in turns])) for i in (0, -1))
        return f"{early:.2f} → {late:.2f}", late > early

    before = "mean weight of the energy in the first and the last 250 steps of a map: "
    return _together(((d, of(d)) for d in DATASETS), before)


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
    return f"norm {norm:.2f}, largest entry {largest:.2f}", bool(abs(norm - 0.23) < 0.1)


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


def lower_gram_without_labels(found: Found) -> Finding:
    """Both learnable metrics have lower Gram errors than `off`."""

    def of(dataset: str) -> Part | None:
        keys: list[Key] = [(dataset, method, "unsupervised", "paper") for method in PIEFS]
        if not all(key in found.gram for key in keys):
            return None
        off, *others = (found.gram[key].mean for key in keys)
        return f"{off:.2f} → {min(others):.2f}", max(others) < off

    return _together((d, of(d)) for d in DATASETS)


def matches_neuralef(found: Found) -> Finding:
    """Without labels `off` is level with NeuralEF or ahead, on four of five sets."""
    gaps = {}
    for dataset in DATASETS:
        ours = found.accuracy(dataset, "piefs-off", "unsupervised")
        theirs = found.accuracy(dataset, "neuralef", "unsupervised")
        if ours and theirs:
            gaps[dataset] = ours.mean - theirs.mean
    text = ", ".join(f"{TITLES[d]} {gap:+.1f}" for d, gap in gaps.items())
    if len(gaps) < len(DATASETS):
        return (f"points ahead: {text}; the others are not run yet" if text else NOT_RUN[0]), None
    return f"points ahead: {text}", sum(gap >= -0.1 for gap in gaps.values()) >= 4


def penalty_restores(found: Found) -> Finding:
    """A penalty on log λ brings the metrics' accuracy nearer to that of `off`."""

    def of(dataset: str) -> Part | None:
        plain = found.of_metrics(dataset, "unsupervised")
        keys: list[Key] = [(dataset, m, "unsupervised", "anisotropy") for m in PIEFS[1:]]
        if not plain or not all(key in found.test for key in keys):
            return None
        off, *gaps = (value.mean for value in plain)
        penalised = [found.test[key].mean for key in keys]
        pairs = list(zip(gaps, penalised, strict=True))
        text = " and ".join(f"{a - off:+.1f} → {b - off:+.1f}" for a, b in pairs)
        return text, all(abs(b - off) < abs(a - off) for a, b in pairs)

    before = "diag and trotter against off, points, without and with the penalty: "
    return _together(((d, of(d)) for d in LOW_DIMENSIONAL), before)


def log_scales(found: Found) -> Finding:
    """How far log λ spans."""
    ranges = [
        high - low
        for record in found.every
        if record.cell.mode == "unsupervised" and record.cell.method in PIEFS[1:]
        if record.cell.variant == "paper"
        for low, high in record.metrics["log_scale_ranges"]
    ]
    if not ranges:
        return NOT_RUN
    return f"log λ spans up to {max(ranges):.1f} over the rows", max(ranges) > 2
