"""What the held-out scores and the data say is wrong with a run, and what to try.

Plain functions of the run's metrics and evidence. Training itself is judged in
`piefs.training.diagnosis`; its findings are passed on.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from piefs.data.table import listing
from piefs.training.diagnosis import Finding, overfitting

GRAM_PER_MAP = 0.25  # root mean square deviation from the identity, for each map
CALIBRATION = 0.05
FEW_ROWS_A_CLASS, FEW_TEST_ROWS = 10, 100
IMBALANCED = 0.9
LEAK, REPEATED = 0.01, 0.05
NAMED = 5  # classes or columns, at most
SUFFICIENT = 0.005  # fewer maps suffice if their score is within this of that of all


def settings_in_use(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that decided a fit: the closed form has few."""
    if config.get("solver") != "eigen":
        return config
    names = ("preset", "solver", "n_components", "seed")
    return {name: config[name] for name in names} | {"metric": config["metric"]["name"]}


def findings(metrics: dict[str, Any], evidence: dict[str, Any]) -> list[Finding]:
    """All findings about a run, the bad ones first, and at most one of overfitting."""
    gap = overfitting(metrics)
    of_training = map(Finding.from_document, metrics.get("warnings", ()))
    found = [
        gap,
        worse_than_a_baseline(metrics, evidence),
        never_predicted(evidence),
        poorly_calibrated(metrics, evidence),
        not_orthonormal(metrics, evidence["data"]["n_rows"]["train"]),
        *(one for one in of_training if gap is None or one.kind != gap.kind),
        *data_findings(evidence),
        fewer_maps_suffice(evidence),
    ]
    return sorted((one for one in found if one is not None), key=lambda finding: not finding.bad)


def worse_than_a_baseline(metrics: dict[str, Any], evidence: dict[str, Any]) -> Finding | None:
    """A simple method that is clearly better on the validation rows."""
    name = "accuracy" if "accuracy" in metrics else "r2"
    ours = (metrics.get(name) or {}).get("validation")
    others = {one["name"]: one["scores"].get(name, {}) for one in evidence["baselines"]}
    known = [(s["validation"], by) for by, s in others.items() if s.get("validation") is not None]
    if ours is None or not known:
        return None
    best, by = max(known)
    margin = 0.02
    if name == "accuracy":  # two standard errors: smaller differences may be chance
        n = max(evidence["data"]["n_rows"]["validation"], 1)
        margin = max(0.003, 2 * (ours * (1 - ours) / n) ** 0.5)
    if best - ours <= margin:
        return None
    more = (
        "Train longer (--steps), take the preset default if this was fast, try more maps (-k)"
        if _took_steps(metrics)
        else "Leave out columns that say nothing (--drop), try networks (--solver nested)"
    )
    return Finding(
        "worse-than-a-baseline",
        f"On the validation rows {by} reaches {_shown(name, best)}, this model "
        f"{_shown(name, ours)}.",
        f"{more}, or use that method: it may suit these data better.",
    )


def _shown(name: str, value: float) -> str:
    return f"R² {value:.3f}" if name == "r2" else f"{100 * value:.1f} %"


def _took_steps(metrics: dict[str, Any]) -> bool:
    """Whether maps descended; the closed form has no settings of training to advise."""
    return metrics.get("steps") != 0


def never_predicted(evidence: dict[str, Any]) -> Finding | None:
    """Classes that occur in the held-out rows but are never predicted."""
    confusions = [one["confusion"] for one in evidence["judged"].values() if "confusion" in one]
    if not confusions:
        return None
    counts = np.sum(confusions, axis=0)
    missed = np.flatnonzero(counts.any(axis=1) & ~counts.any(axis=0)).tolist()
    names = [evidence["data"]["class_names"][c] for c in missed]
    if not names:
        return None
    return Finding(
        "never-predicted",
        f"No held-out row is predicted as {listing(names, NAMED)}, though some are.",
        'Weight the classes evenly (class_weight = "balanced" in a --config file), give more '
        "rows of them, or merge rare classes.",
    )


def poorly_calibrated(metrics: dict[str, Any], evidence: dict[str, Any]) -> Finding | None:
    """Probabilities that are off by more than the bins' sampling error."""
    ece = (metrics.get("ece") or {}).get("validation")
    n = evidence["data"]["n_rows"]["validation"]
    if ece is None or ece <= CALIBRATION + 0.5 * (15 / max(n, 1)) ** 0.5:
        return None
    bins = {name: np.array(v) for name, v in evidence["judged"]["validation"]["bins"].items()}
    too_sure = np.sum(bins["counts"] * (bins["confidence"] - bins["accuracy"])) > 0
    remedy = "try a larger smoothness, " if too_sure else "train longer (--steps), "
    return Finding(
        "poor-calibration",
        f"The model is {'overconfident' if too_sure else 'underconfident'}: confidence and "
        f"accuracy are {100 * ece:.1f} points apart on average over the validation rows.",
        "Rely on the predicted classes rather than on the probabilities, "
        f"{remedy if _took_steps(metrics) else ''}or calibrate with scikit-learn's "
        "CalibratedClassifierCV.",
    )


def not_orthonormal(metrics: dict[str, Any], n_rows: int) -> Finding | None:
    """Coordinates that are further from orthonormal on held-out rows than few rows explain.

    K (K + 1) / 2 second moments are estimated from n rows, which puts ‖C − I‖² of others at about
    K (K + 1) / n.
    """
    scores, k = metrics.get("gram_error_unbiased") or {}, len(metrics["energies"])
    error, split = max((scores.get(name) or 0.0, name) for name in ("validation", "test"))
    floor = k * (k + 1) / n_rows
    if error <= max(k * GRAM_PER_MAP**2, 3 * floor):
        return None
    return Finding(
        "not-orthonormal",
        f"On {split} rows the Gram matrix is {error**0.5:.2f} away from the identity, of which "
        f"{floor**0.5:.2f} is usual for {k} maps of {n_rows:,} rows.",
        "Distances between the coordinates of new rows are distorted. Look for outliers, give more "
        "rows, or take fewer maps (-k).",
    )


def data_findings(evidence: dict[str, Any]) -> Iterator[Finding]:
    """Properties of the data that distort scores or training."""
    facts, n_rows = evidence["facts"], evidence["data"]["n_rows"]
    held_out = n_rows["validation"] + n_rows["test"]
    if facts["leaked"] and facts["leaked"] > LEAK * held_out:
        yield Finding(
            "leaked-rows",
            f"{facts['leaked']:,} of {held_out:,} held-out rows have the same inputs as a training "
            "row: scores may be too good.",
            "Remove duplicates, or keep related rows together with --group COLUMN.",
        )
    elif facts["repeated"] and facts["repeated"] > REPEATED * n_rows["train"]:
        yield Finding(
            "repeated-rows",
            f"{facts['repeated']:,} training rows repeat the inputs of another row.",
            "Remove duplicates if they are mistakes; keep rows that belong together in one split "
            "with --group COLUMN.",
            bad=False,
        )
    if constant := facts["constant_columns"]:
        yield Finding(
            "constant-columns",
            f"Columns with the same value in every training row: {listing(constant, NAMED)}.",
            "They were left out; drop them from the file if they should be.",
            bad=False,
        )
    yield from _class_findings(facts, evidence["data"]["class_names"])
    if n_rows["test"] < FEW_TEST_ROWS:
        yield Finding(
            "few-test-rows",
            f"There are only {n_rows['test']} test rows: scores on this page have large errors.",
            "Compare methods by cross-validation in Python, or give more rows.",
            bad=False,
        )


def _class_findings(facts: dict[str, Any], names: Sequence[str]) -> Iterator[Finding]:
    if "class_counts" not in facts:
        return
    counts = np.array(facts["class_counts"]["train"])
    few = np.flatnonzero(counts < FEW_ROWS_A_CLASS).tolist()
    if rare := [f"{names[c]} ({counts[c]})" for c in few]:
        yield Finding(
            "few-rows-a-class",
            f"Fewer than {FEW_ROWS_A_CLASS} training rows: {listing(rare, NAMED)}.",
            "Give more rows of these classes, or merge them; their scores mean little.",
        )
    if counts.max() > IMBALANCED * counts.sum():
        yield Finding(
            "imbalanced",
            f"{100 * counts.max() / counts.sum():.0f} % of the training rows belong to one class, "
            f"{names[int(counts.argmax())]}.",
            'Look at F1, precision and recall rather than at accuracy; class_weight = "balanced" '
            "in a --config file weights classes evenly.",
            bad=False,
        )


def fewer_maps_suffice(evidence: dict[str, Any]) -> Finding | None:
    """The fewest leading maps that match the score of all on the validation rows."""
    by_maps = evidence["by_maps"]
    if by_maps is None or (n := by_maps["kept"][-1]) < 4:
        return None
    scores = np.array(by_maps["scores"]["validation"])
    enough = by_maps["kept"][int(np.argmax(scores >= scores[-1] - SUFFICIENT))]
    if enough > n / 2:
        return None
    few = f"The first {enough} of {n} maps give"
    if enough == 1:
        few = f"The first of {n} maps alone gives"
    return Finding(
        "fewer-maps-suffice",
        f"{few} a linear probe nearly its full score.",
        f"-k {enough} makes a smaller model with much the same score.",
        bad=False,
    )
