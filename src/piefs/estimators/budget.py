"""How many steps and how much weight decay: chosen on rows set aside; then all rows are used.

Few rows are soon learned by heart. A trial for each decay, on part of the rows, shows after how
many steps the readout's loss on the rest is lowest; decays that are clearly worse are not tried on
another part. The model proper then sees all rows, with the best decay and as many steps, its rate
falling to zero over just these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from piefs.core.losses import ReadoutLoss
from piefs.estimators.rows import set_aside
from piefs.training.batches import Samples
from piefs.training.callbacks import Stage, begin_stage
from piefs.training.config import Settings
from piefs.training.history import Validation
from piefs.training.loop import Callback, train
from piefs.training.state import WarmStart

FEWEST_STEPS = 100
CLEARLY_WORSE = 1.25  # times the lowest loss: such a decay is tried on no further cut
ENOUGH_HELD_OUT, MOST_CUTS = 200, 4


def choose_budget(
    samples: Samples,
    settings: Settings,
    decays: Sequence[float],
    *,
    validation: Validation | None,
    fraction: float,
    scorer: Callable,
    n_outputs: int,
    readout_loss: ReadoutLoss | None,
    warm_start: WarmStart | None,
    callbacks: Sequence[Callback] = (),
    n_stages_after: int = 1,
) -> tuple[int, float]:
    """The steps after which the loss on validation rows was lowest, and the weight decay it had.

    There are at most as many steps as the settings have. Without validation rows, a `fraction`
    of the labelled rows is held out, more than once if that is few rows. Callbacks are told
    that `n_stages_after` stages follow.
    """
    seed = settings.seed
    cuts = [(samples, validation)] if validation else _cuts(samples, fraction, seed, scorer)
    curves: dict[float, list[dict[int, float]]] = {decay: [] for decay in decays}
    n_done = 0
    for n_cuts_left, (kept, held) in zip(range(len(cuts), 0, -1), cuts, strict=True):
        size = min(settings.batch_size, len(kept))
        for n_tried, decay in enumerate(curves):
            n_left = n_cuts_left * len(curves) - n_tried
            name = f"trial {n_done + 1} of {n_done + n_left}"
            with_decay = replace(settings, weight_decay=decay, batch_size=size)
            stage = Stage(name, with_decay, n_left + n_stages_after, is_trial=True)
            begin_stage(callbacks, stage)
            trial = train(
                kept,
                with_decay,
                n_outputs=n_outputs,
                readout_loss=readout_loss,
                validation=held,
                warm_start=warm_start,
                callbacks=callbacks,
            )
            curves[decay].append({int(r["step"]): r["validation_loss"] for r in trial.history})
            n_done += 1
        curves = _contenders(curves)
    _, step, decay = min((*lowest_mean(curves[decay]), decay) for decay in curves)
    steps = round(step * len(samples) / len(cuts[0][0]))
    return min(max(steps, FEWEST_STEPS), settings.steps_per_component), decay


def _contenders(
    curves: dict[float, list[dict[int, float]]],
) -> dict[float, list[dict[int, float]]]:
    """The decays that are not clearly worse than the best, after the same cuts for all."""
    lowest = {decay: lowest_mean(found)[0] for decay, found in curves.items()}
    most = CLEARLY_WORSE * min(lowest.values())
    return {decay: found for decay, found in curves.items() if not lowest[decay] > most}


def lowest_mean(curves: Sequence[dict[int, float]]) -> tuple[float, int]:
    """The lowest mean over curves of a loss by steps, and its step; all must have come that far.

    Where callbacks ended trials so early that they have no step in common, each curve counts with
    its own lowest loss, and the fewest of their steps are taken.
    """
    common = set.intersection(*(set(curve) for curve in curves))
    if not common:
        own = [min((loss, step) for step, loss in curve.items()) for curve in curves]
        return float(np.mean([loss for loss, _ in own])), min(step for _, step in own)
    return min((float(np.mean([curve[step] for curve in curves])), step) for step in common)


def _cuts(
    samples: Samples, fraction: float, seed: int, scorer: Callable
) -> list[tuple[Samples, Validation]]:
    """Rows to train on and rows set aside, as often as it takes for the latter to tell enough."""
    cuts = []
    n_held_out = 0
    while n_held_out < ENOUGH_HELD_OUT and len(cuts) < MOST_CUTS:
        rows, held = hold_out(samples, fraction, seed + len(cuts))
        apart = samples.take(held)
        cuts.append((samples.take(rows), Validation(apart, scorer(apart.targets))))
        n_held_out += len(held)
    return cuts


def hold_out(samples: Samples, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, and labelled rows set aside, class shares kept where that is possible."""
    labelled = np.flatnonzero(samples.label_weights > 0)
    _, held = set_aside(labelled, samples.targets[labelled], fraction, seed)
    held = np.sort(held)
    return np.setdiff1d(np.arange(len(samples)), held), held
