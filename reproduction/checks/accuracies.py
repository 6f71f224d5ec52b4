"""Claims about accuracies, and what each component and setting does to them."""

from __future__ import annotations

from collections.abc import Callable

from reproduction.cells import DATASETS, ITEMS, PIEFS
from reproduction.checks import ENOUGH_SEEDS, NOT_RUN, Check, Finding, Found, error_of_gap, on
from reproduction.entries import TITLES


def versus(
    dataset: str, ours: str, theirs: str, holds: Callable[[float], bool], mode: str = "supervised"
) -> Check:
    """Two methods on a data set, by the difference of their accuracies in points.

    There is no verdict where it would be another one at either end of the difference's error.
    """

    def check(found: Found) -> Finding:
        other_mode = "unsupervised" if theirs == "neuralef" else mode
        a, b = found.accuracy(dataset, ours, mode), found.accuracy(dataset, theirs, other_mode)
        if a is None or b is None:
            return NOT_RUN
        gap = a.mean - b.mean
        error = error_of_gap(dataset, {ours: a, theirs: b})
        verdicts = {holds(value) for value in (gap - error, gap, gap + error)}
        text = f"{ours} {a.mean:.2f} %, {theirs} {b.mean:.2f} %: {gap:+.2f} ± {error:.2f} points"
        return text, verdicts.pop() if len(verdicts) == 1 else None

    return check


def every(*checks: Check) -> Check:
    """Several findings as one, which fails where one of them does."""

    def check(found: Found) -> Finding:
        texts, verdicts = zip(*(check(found) for check in checks), strict=True)
        holds = False if False in verdicts else None if None in verdicts else True
        return "; ".join(texts), holds

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
    """`off` is ahead of both learnable metrics, or at most `slack` points behind.

    There is no verdict where that is within the gap's error.
    """

    def of(found: Found, dataset: str) -> Finding | None:
        measured = {method: found.accuracy(dataset, method, mode) for method in PIEFS}
        present = {method: one for method, one in measured.items() if one is not None}
        if len(present) < len(PIEFS):
            return None
        off, *others = PIEFS
        best = max(others, key=lambda method: present[method].mean)
        gap = present[best].mean - present[off].mean
        error = error_of_gap(dataset, {name: present[name] for name in (best, off)})
        holds = None if abs(gap - slack) <= error else gap < slack
        return f"{gap:+.2f} ± {error:.2f}", holds

    before = "the better metric against off, points"
    if slack:
        before += f", of which {slack} pass (in the paper's own table trotter is 0.11 ahead)"
    return on(datasets, of, f"{before}: ")


def all_are_accurate(behind: float) -> Check:
    """With labels, no metric is further behind logistic regression, whatever its Gram error."""

    def of(found: Found, dataset: str) -> Finding | None:
        values = found.of_metrics(dataset, "supervised")
        linear = found.accuracy(dataset, "logistic-regression")
        if not values or linear is None:
            return None
        errors = [found.gram[dataset, m, "supervised", "paper"].mean for m in PIEFS]
        text = f"{min(values):.1f} to {max(values):.1f} % at {min(errors):.2f} to {max(errors):.2f}"
        return text, min(values) >= linear.mean - behind

    before = f"accuracy of the three metrics, at most {behind:g} points behind logistic regression"
    return on(DATASETS, of, f"{before}, and batch Gram errors: ")


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
    text = "1/(1 + g/T) and (1 − g/T)²₊ against the exponential, with Gram errors: "
    planned = {cell.dataset for cell in ITEMS["table-weighting"](1)}
    is_told = all(is_worse) or len(parts) >= len(planned)
    return text + "; ".join(parts), all(is_worse) if is_told else None


def smoothness_regularises(found: Found, dataset: str) -> Finding | None:
    """Training rows are less far ahead of test rows with the energy, if they are ahead without."""
    test = found.of_variants(dataset, "paper", "no-smoothness")
    train = found.of_variants(dataset, "paper", "no-smoothness", found=found.train)
    if not test or not train:
        return None
    with_it, without = (a - b for a, b in zip(train, test, strict=True))
    holds = with_it < without - 0.1 if without > 0.1 else None
    return f"{without:+.2f} → {with_it:+.2f}", holds


def smoothness_improves(found: Found, dataset: str) -> Finding | None:
    """The accuracy is higher with the energy than without."""
    accuracy = found.of_variants(dataset, "paper", "no-smoothness")
    error = found.of_variants(dataset, "paper", "no-smoothness", found=found.gram)
    if not accuracy or not error:
        return None
    gap = accuracy[0] - accuracy[1]
    return f"{gap:+.2f} points, Gram error {error[1]:.2f} → {error[0]:.2f}", gap > 0.1


def compact_is_competitive(found: Found, dataset: str) -> Finding | None:
    """`off` is ahead of the paper's other 16 features; of a bottleneck of 16 units beside them."""
    ours, pca = found.accuracy(dataset, "piefs-off"), found.accuracy(dataset, "pca-lr")
    neuralef = found.accuracy(dataset, "neuralef", "unsupervised")
    if ours is None or pca is None or neuralef is None:
        return None
    ahead = [ours.mean - pca.mean, ours.mean - neuralef.mean]
    text = f"{ahead[0]:+.1f} on PCA, {ahead[1]:+.1f} on NeuralEF"
    bottleneck = found.accuracy(dataset, "bottleneck-mlp")
    if bottleneck is not None:
        text += f", {ours.mean - bottleneck.mean:+.1f} on a bottleneck MLP"
    return text, min(ahead) > 0


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
