"""What trials choose: how many steps, how much weight decay, how many maps; then all rows train.

Few rows are soon learned by heart. A trial for each decay, on part of the rows, shows after how
many steps the readout's loss on the rest is lowest; decays that are clearly worse are not tried on
another part. The model proper then sees all rows, with the best decay and as many steps, its rate
falling to zero over just these.

Maps that are nested are ordered, and each number of leading maps has a readout of its own, so one
run with many maps shows what fewer would do. Maps in turn are added until the loss on held-out rows
stalls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.losses import Readout, ReadoutLoss
from piefs.core.objectives import within_prefixes
from piefs.estimators.measures import loss_by_chance
from piefs.estimators.rows import set_aside
from piefs.training.batches import Samples
from piefs.training.callbacks import Stage, begin_stage
from piefs.training.columns import coordinates_of
from piefs.training.config import Settings
from piefs.training.history import Validation
from piefs.training.loop import Callback, train
from piefs.training.state import TrainState, WarmStart

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


TOLERANCE = 0.02
"""A loss that exceeds the best by less than this share of the loss by chance is as good."""

SCALES = 2.0 ** np.arange(-1, 4.5, 0.5)
"""Factors of the outputs to choose from: readouts of few maps have to be steeper, and steps end
before all of them are as steep as they would become."""

PATIENCE = 2
"""So many maps in turn may bring nothing before no further one is trained."""


def choose_n_components(
    samples: Samples,
    settings: Settings,
    *,
    validation: Validation | None,
    fraction: float,
    scorer: Callable,
    readout_loss: ReadoutLoss,
    callbacks: Sequence[Callback] = (),
    **to_train: Any,
) -> int:
    """The fewest maps that do as well as the settings' number, on validation rows.

    Without those, a `fraction` of the labelled rows is set aside.
    """
    if validation is None:
        kept, held = hold_out(samples, fraction, settings.seed)
        apart = samples.take(held)
        samples, validation = samples.take(kept), Validation(apart, scorer(apart.targets))
    begin_stage(callbacks, Stage("choosing the number of maps", settings, n_left=2, is_trial=True))
    chance = loss_by_chance(samples) or 1.0
    stalling = Stalling(validation.samples, readout_loss, chance)
    in_turn = settings.solver == "sequential"
    trial = train(
        samples,
        settings,
        readout_loss=readout_loss,
        validation=validation,
        callbacks=[*callbacks, stalling] if in_turn else callbacks,
        **to_train,
    )
    if in_turn:
        return stalling.fewest_maps
    return fewest_maps(losses_by_maps(trial, validation.samples, readout_loss), chance)


class Stalling:
    """A callback that ends a run when further maps no longer lower the loss on validation rows."""

    def __init__(self, held: Samples, readout_loss: ReadoutLoss, chance: float) -> None:
        self.held, self.readout_loss, self.chance = held, readout_loss, chance
        self.losses: list[np.ndarray] = []

    def __call__(self, state: TrainState) -> bool:
        """Whether the last maps brought nothing."""
        if not state.is_between_turns:
            return False
        phi = jnp.asarray(coordinates_of(state.maps, self.held.x))
        readout = Readout(state.readout.weights[:, : state.k], state.readout.bias)
        losses = row_losses(readout(phi), self.held, self.readout_loss)
        self.losses.append(np.asarray(losses, np.float64))
        return len(self.losses) - self.fewest_maps >= PATIENCE

    @property
    def fewest_maps(self) -> int:
        """The smallest number of maps so far that is as good as the best."""
        return fewest_maps(np.stack(self.losses, axis=1), self.chance)


def losses_by_maps(state: TrainState, held: Samples, readout_loss: ReadoutLoss) -> np.ndarray:
    """The loss of each row with the first 1, 2, …, K maps kept, shape (n, K)."""
    phi = jnp.asarray(coordinates_of(state.maps, held.x))
    readouts = within_prefixes(state.params.readout)
    losses = jax.vmap(lambda readout: row_losses(readout(phi), held, readout_loss))(readouts)
    return np.asarray(losses.T, np.float64)


def row_losses(outputs: Array, held: Samples, readout_loss: ReadoutLoss) -> Array:
    """The loss of each row, its outputs scaled by the factor that is best for all of them."""
    targets = jnp.asarray(held.targets)
    scaled = jnp.asarray(SCALES, outputs.dtype)[:, None, None] * outputs
    losses = jax.vmap(lambda outputs: readout_loss(outputs, targets))(scaled)
    return losses[jnp.argmin(losses.mean(axis=1))]


def fewest_maps(losses: np.ndarray, chance: float) -> int:
    """The smallest K as good as the best: within one standard error of it, or a small share."""
    means = losses.mean(axis=0)
    best = int(np.argmin(means))
    error = losses[:, best].std() / np.sqrt(len(losses))
    as_good = means <= means[best] + max(error, TOLERANCE * chance)
    return 1 + int(np.argmax(as_good))
