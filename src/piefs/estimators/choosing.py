"""How many maps: chosen on rows set aside; then that many are trained on all rows.

Maps that are nested are ordered, and each number of leading maps has a readout of its own, so one
run with many maps shows what fewer would do. Maps in turn are added until the loss on the rows set
aside stalls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.losses import Readout, ReadoutLoss
from piefs.core.objectives import within_prefixes
from piefs.estimators.budget import hold_out
from piefs.estimators.measures import loss_by_chance
from piefs.training.batches import Samples
from piefs.training.callbacks import Stage, begin_stage
from piefs.training.columns import coordinates_of
from piefs.training.config import Settings
from piefs.training.history import Validation
from piefs.training.loop import Callback, train
from piefs.training.state import TrainState

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
