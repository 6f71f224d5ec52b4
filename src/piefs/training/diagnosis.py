"""Signs that a run has gone wrong, read off its history and its maps; each says what to do.

Healthy runs raise no warning: the thresholds lie beyond all that was seen on such runs of the
built-in data and the paper's own settings (LOG.md).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from piefs.training.batches import Row, Samples
from piefs.training.config import Settings

FEWEST_ROWS = 10  # a shorter history says too little of where a run is going

GRAM_SHARE, RAW_GRAM_SHARE = 0.5, 10.0
"""Maps that are all zero have ‖C − I‖² = K. Coordinates may have half of that, and maps before
whitening, which mends it, ten times that (2 K on digits): beyond it they have run away."""

SAME_EVERYWHERE = 1e-6  # of a map's mean square: it is a constant if no more varies between rows
LARGEST_LOG_SCALE = 8.0
"""Half of −log of single precision's resolution: beyond it λ² outweighs all other terms of a sum.
The paper's own runs end within ±7.1."""

# Those of losses are shares of the loss of a constant prediction.
STILL_FALLING = 0.04  # of the validation loss in the second half of the steps; healthy runs: 0.03
OVERFITTED = 0.35  # how far the loss on validation rows may lie above that on training rows
LEARNED_BY_HEART, SPOILED = 0.03, 0.1
"""The training loss of a saturated readout, and how far its validation loss has risen."""

# Scores, the gap between training and validation rows that is reported, and its wording.
GAPS = (
    ("accuracy", 0.02, lambda gap: f"{100 * gap:.1f} points of accuracy"),
    ("r2", 0.05, lambda gap: f"{gap:.2f} of R²"),
)

LABEL_ROWS = 2**20  # whose weights are in memory in double precision at a time


@dataclass(frozen=True)
class Finding:
    """Something to know of a run: what was seen and what to try; `bad` if it spoils the model."""

    kind: str
    says: str
    advice: str
    bad: bool = True

    @property
    def message(self) -> str:
        """Both in one."""
        return f"{self.says} {self.advice}"

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Finding":
        """A finding as it was written down: by its fields, or, earlier, as kind and message."""
        kind = str(document["kind"])
        if "message" in document:
            says, _, advice = str(document["message"]).partition(". ")
            return cls(kind, f"{says[:1].upper()}{says[1:].removesuffix('.')}.", advice)
        return cls(kind, str(document["says"]), str(document["advice"]), bool(document["bad"]))


@dataclass(frozen=True)
class RunRecord:
    """What a finished run is judged by.

    `gram_error` is that of the coordinates on the training rows; `raw` are the maps' values on
    them, (n, K), before whitening; `chance` is the readout's loss on a constant prediction, None
    without labels; `used_all_steps` says whether all steps have been taken; `rate_cuts` are the
    steps before which the rate was cut, and `rate` is what was left of it.
    """

    settings: Settings
    history: Sequence[Row]
    gram_error: float
    raw: np.ndarray
    log_scale_ranges: Sequence[tuple[float, float]]
    chance: float | None
    used_all_steps: bool = True
    rate_cuts: Sequence[int] = ()
    rate: float = 0.0


def findings(evidence: RunRecord) -> list[Finding]:
    """All that is wrong, at most one finding of a kind."""
    found = [*_of_rate_and_maps(evidence)]
    if len(evidence.history) >= FEWEST_ROWS:
        found += [*_of_gram_error(evidence), *_of_losses(evidence)]
    return found


def variation(raw: np.ndarray) -> np.ndarray:
    """Which share of its mean square varies from row to row, for each map."""
    raw = raw.astype(np.float64)
    return np.var(raw, axis=0) / np.maximum(np.mean(raw**2, axis=0), SAME_EVERYWHERE)


def varying(raw: np.ndarray) -> np.ndarray:
    """The numbers of the maps that are not constant; of the first, if all are."""
    found = np.flatnonzero(variation(raw) > SAME_EVERYWHERE)
    return found if len(found) else np.arange(1)


def loss_by_chance(samples: Samples) -> float | None:
    """The readout's loss where it says the same of every row: the entropy of the classes, or the
    variance of the numbers; None without labels.
    """
    if samples.target is None:
        return None
    total = samples.label_weights.sum(dtype=float)
    if samples.target.ndim == 1:
        n_classes = int(samples.target.max()) + 1
        counts = _sum_over_rows(samples, lambda y, w: np.bincount(y, w, minlength=n_classes))
        shares = counts[counts > 0] / total
        return float(-np.sum(shares * np.log(shares)))
    mean = _sum_over_rows(samples, lambda y, w: w @ y) / total
    variance = _sum_over_rows(samples, lambda y, w: w @ (y - mean) ** 2) / total
    return max(float(np.mean(variance)), float(np.finfo(np.float32).tiny))


def _sum_over_rows(samples: Samples, of: Callable) -> Any:
    """A sum in blocks: of very many rows, weights in double precision are large."""
    rows = (slice(start, start + LABEL_ROWS) for start in range(0, len(samples), LABEL_ROWS))
    return sum(of(samples.targets[i], samples.label_weights[i].astype(float)) for i in rows)


def n_constants(evidence: RunRecord) -> int:
    """How many maps may be constant, which is the smoothest function of all.

    Without labels, or where smoothness gets its turn by weights that change, it is one.
    """
    return int(evidence.chance is None or evidence.settings.solver == "sequential")


def _of_rate_and_maps(evidence: RunRecord) -> Iterator[Finding]:
    if times := len(evidence.rate_cuts):
        yield Finding(
            "rate-cut",
            f"Losses or parameters did not stay finite after step {evidence.rate_cuts[0]}: the "
            f"steps were taken again at a smaller learning rate, cut {times} "
            f"time{'s' * (times > 1)} from {evidence.settings.learning_rate:g} to "
            f"{evidence.rate:.2g}.",
            f"Set learning_rate={evidence.rate:.1g} from the start, and see that no column of the "
            "data has values far beyond its others.",
            bad=False,
        )
    dead = np.flatnonzero(variation(evidence.raw) <= SAME_EVERYWHERE)
    if len(dead) > n_constants(evidence):
        are = "are left out:" if evidence.settings.solver in ("nested", "joint") else "count:"
        yield Finding(
            "dead-maps",
            f"{len(dead)} of {evidence.raw.shape[1]} maps are constant on the training rows (map "
            f"{', '.join(str(k + 1) for k in dead)}) and {are} their units are all off, or "
            "smoothness outweighs what they would explain.",
            'Lower learning_rate or smoothness, or take activation="silu" instead of "relu", or '
            "fewer maps (n_components).",
        )
    largest = float(np.max(np.abs(evidence.log_scale_ranges), initial=0.0))
    if largest > LARGEST_LOG_SCALE:
        yield Finding(
            "metric",
            f"The metric is degenerate: |log λ| reaches {largest:.1f}, so that some directions "
            "count for nothing and others for all.",
            'Set bound=3 in Metric(…), or a penalty such as anisotropy=0.1, or constraint="trace".',
        )


REMEDIES = {
    "sequential": "take more steps_per_component or a smaller t_orth in Dampened(…)",
    "spectral": "take more steps_per_component, or less smoothness",
}


def _of_gram_error(evidence: RunRecord) -> Iterator[Finding]:
    n_maps, raw = evidence.raw.shape[1], evidence.history[-1]["gram_error"]
    if evidence.gram_error > GRAM_SHARE * n_maps or raw > RAW_GRAM_SHARE * n_maps:
        usual = "raise orth in weighting=Static(…) tenfold, or lower smoothness"
        yield Finding(
            "gram-error",
            "The maps are far from orthonormal: a Gram error of "
            f"{max(evidence.gram_error, raw):.3g} for {n_maps} maps, where maps that are all zero "
            f"have {n_maps}.",
            f"To mend it, {REMEDIES.get(evidence.settings.solver, usual)}.",
        )


def late_fall(losses: Sequence[float]) -> float:
    """By how much a loss fell over the second half of its rows, from mean to mean of a tenth."""
    half, n = len(losses) // 2, max(len(losses) // 10, 1)
    return float(np.mean(losses[half : half + n]) - np.mean(losses[-n:]))


def shares_of_chance(evidence: RunRecord) -> list[float]:
    """The losses on validation rows as shares of that by chance, or none."""
    if evidence.chance is None or "validation_loss" not in evidence.history[-1]:
        return []
    return [row["validation_loss"] / evidence.chance for row in evidence.history]


def _of_losses(evidence: RunRecord) -> Iterator[Finding]:
    """What the losses on training and on validation rows say."""
    losses, last, chance = shares_of_chance(evidence), evidence.history[-1], evidence.chance
    if not losses or chance is None:
        return
    fall = late_fall(losses)
    in_turn = evidence.settings.solver == "sequential"  # each new map lowers the loss again
    if evidence.used_all_steps and not in_turn and fall > STILL_FALLING:
        yield Finding(
            "still-improving",
            f"The validation loss was still falling when the steps ended: by {100 * fall:.0f} % of "
            "the loss of a constant prediction in their second half.",
            f"Take more steps_per_component than {evidence.settings.steps_per_component}.",
        )
    trained = last["loss_class"] / chance
    if trained <= LEARNED_BY_HEART and losses[-1] - min(losses) > SPOILED:
        yield Finding(
            "saturated",
            f"The readout is saturated: the training rows are learned by heart (loss "
            f"{last['loss_class']:.2g}) while the validation loss has risen from "
            f"{min(losses) * chance:.3g} to {last['validation_loss']:.3g}.",
            "Set early_stopping=True, or raise weight_decay.",
        )
    elif losses[-1] - trained > OVERFITTED:
        yield Finding(
            "overfitting",
            f"The validation loss ({last['validation_loss']:.3g}) is far above the training loss "
            f"({last['loss_class']:.3g}): the maps do not carry over to new rows.",
            "Raise weight_decay, set early_stopping=True, or give more rows.",
        )


OF_NETWORKS = (
    "For a model on top of them, scikit-learn's "
    'cross_val_predict(model, X, y, method="transform") gives honest ones. '
    "More rows, fewer maps (-k) or a larger smoothness narrow the gap."
)
IN_CLOSED_FORM = (
    "The readout was fitted on coordinates as if each row had been left out (left_out_ in Python); "
    "fit another model on those too. More rows or fewer columns (--drop) narrow the gap."
)


def overfitting(metrics: dict[str, Any]) -> Finding | None:
    """Training rows that score much better than validation rows, by the metrics of a run.

    Maps trained on labels have seen those of their training rows, so a further model that is
    fitted on these rows' coordinates trusts them too much.
    """
    if metrics["task"] == "unsupervised":
        return None
    for name, margin, form in GAPS:
        scores = metrics.get(name) or {}
        train, held_out = scores.get("train"), scores.get("validation")
        if train is not None and held_out is not None and train - held_out > margin:
            descends = metrics.get("steps") != 0
            return Finding(
                "overfitting",
                f"The training rows score {form(train - held_out)} above the validation rows: "
                "their coordinates are optimistic.",
                OF_NETWORKS if descends else IN_CLOSED_FORM,
                bad=descends,
            )
    return None
