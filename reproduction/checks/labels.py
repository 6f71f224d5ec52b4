"""Claims about training without labels."""

from __future__ import annotations

from statistics import mean

from reproduction.cells import DATASETS, PIEFS
from reproduction.checks import NOT_RUN, Finding, Found, error_of_gap
from reproduction.entries import TITLES
from reproduction.records import Key


def lower_gram_without_labels(found: Found, dataset: str) -> Finding | None:
    """Both learnable metrics have lower Gram errors than `off`."""
    keys: list[Key] = [(dataset, method, "unsupervised", "paper") for method in PIEFS]
    if not all(key in found.gram for key in keys):
        return None
    off, *others = (found.gram[key].mean for key in keys)
    return f"{off:.2f} → {max(others):.2f}", max(others) < off


def metric_shrinks_energy(found: Found, dataset: str) -> Finding | None:
    """The maps' mean energy under either learnable metric is less than half of that with `off`."""
    energies = [found.energies(dataset, method, "unsupervised") for method in PIEFS]
    if not all(energies):
        return None
    off, *others = (mean(value for run in runs for value in run) for runs in energies)
    return f"{off:.3f} → {max(others):.3f}", max(others) < off / 2


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
    """A penalty on log λ brings metrics that are behind `off` nearer to it.

    Behind is what is so by more than the error of the gap.
    """
    plain = {method: found.accuracy(dataset, method, "unsupervised") for method in PIEFS}
    penalised = {m: found.test.get((dataset, m, "unsupervised", "anisotropy")) for m in PIEFS[1:]}
    off, texts, verdicts = plain[PIEFS[0]], [], []
    for method, after in penalised.items():
        before = plain[method]
        if off is None or before is None or after is None:
            return None
        texts.append(f"{before.mean - off.mean:+.1f} → {after.mean - off.mean:+.1f}")
        if off.mean - before.mean > error_of_gap(dataset, {PIEFS[0]: off, method: before}):
            verdicts.append(after.mean > before.mean)
    text = " and ".join(texts)
    return (text, all(verdicts)) if verdicts else (f"{text} (not behind off)", None)


def _ranges(found: Found, mode: str) -> dict[tuple[str, str, int], list[tuple[float, float]]]:
    """The lowest and highest log λ over rows and columns, map by map, of each learnable metric."""
    return {
        (record.cell.dataset, record.cell.method, record.cell.seed): [
            (low, high) for low, high in record.metrics["log_scale_ranges"]
        ]
        for record in found.every
        if record.cell.mode == mode and record.cell.method in PIEFS[1:]
        if record.cell.variant == "paper"
    }


def log_scales(found: Found) -> Finding:
    """How far log λ spans without labels: from end to end, and from zero.

    The paper does not say of what its "per-coordinate ranges" are, so both have to agree.
    """
    ranges = [pair for pairs in _ranges(found, "unsupervised").values() for pair in pairs]
    if not ranges:
        return NOT_RUN
    span = max(high - low for low, high in ranges)
    farthest = max(max(-low, high) for low, high in ranges)
    text = f"log λ of a map spans up to {span:.1f} over rows and columns, up to {farthest:.1f} from"
    verdicts = {3 <= value <= 5 for value in (span, farthest)}
    return f"{text} zero", verdicts.pop() if len(verdicts) == 1 else None


def labels_hold_scales(found: Found, dataset: str) -> Finding | None:
    """log λ spans further without labels than with them, on average over seeds that both have."""
    by_mode = [_ranges(found, mode) for mode in ("supervised", "unsupervised")]
    shared = [key for key in by_mode[0] if key[0] == dataset and key in by_mode[1]]
    if not shared:
        return None
    with_labels, without = (
        mean(max(high - low for low, high in ranges[key]) for key in shared) for ranges in by_mode
    )
    return f"{with_labels:.1f} and {without:.1f}", without > with_labels
