"""What is recorded of a run while it trains: losses, weights, and scores on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from piefs.core.losses import Readout
from piefs.core.maps import ScalarMap
from piefs.core.objectives import Batch, Objective, SequentialObjective, StepRecord, Trainable
from piefs.training.batches import Row, Validation
from piefs.training.columns import Columns
from piefs.training.config import TOLERANCE, Settings
from piefs.training.state import TrainState
from piefs.training.step import TurnLoss, losses_on

LOSSES = {
    "validation_gram_error": "gram_error",
    "validation_loss_class": "loss_class",
    "validation_loss_mde": "loss_mde",
}
"""What map-after-map training watches: columns of the history, and the losses they hold."""


@dataclass
class HeldOut:
    """The validation rows with their cached columns, and what a history row says of them."""

    validation: Validation
    columns: Columns
    objective: Objective
    needs_loss: bool

    @classmethod
    def of(
        cls,
        validation: Validation | None,
        settings: Settings,
        objective: Objective,
        frozen: Sequence[ScalarMap],
    ) -> HeldOut | None:
        """The validation rows, if there are any, with the columns of the frozen maps."""
        if validation is None:
            if settings.patience is not None:
                raise ValueError("patience needs validation rows to watch")
            return None
        columns = Columns(validation.samples.x, settings.n_components, frozen)
        in_turn = isinstance(objective, SequentialObjective)
        if isinstance(objective, SequentialObjective):
            # All validation rows count at once, so their own Gram matrix is meant.
            objective = replace(objective, population_gram=False)
        return cls(validation, columns, objective, in_turn and settings.patience is not None)

    def row(self, params: Trainable, readout: Readout) -> Row:
        """The scores of the readout, and the losses where they are watched."""
        phi = self.columns.with_active(params.phi)
        row = self.validation.score(np.asarray(readout(jnp.asarray(phi))))
        if self.needs_loss:
            rows = self.validation.samples
            batch = Batch(
                *map(jnp.asarray, (rows.x, self.columns.values, rows.targets)),
                *map(jnp.asarray, (rows.weights, rows.label_weights)),
            )
            losses = losses_on(params, batch, TurnLoss(self.objective, self.columns.n_frozen))
            row |= {name: float(getattr(losses, field)) for name, field in LOSSES.items()}
        return row


def with_steps_counted(
    state: TrainState, settings: Settings, sums: StepRecord, n_steps: int, held_out: HeldOut | None
) -> TrainState:
    """The state with these steps counted, and a history row where an interval is complete.

    A turn's last interval may be shorter than `log_every`.
    """
    count, total = state.interval
    # One by one: while numpy waits for a device's array, it takes Ctrl-C for a bad element.
    new = [float(value) for value in sums]
    count, total = count + n_steps, tuple(np.add(total, new).tolist())
    state = replace(state, interval=(count, total))
    if count < settings.optimizer.log_every and state.step < settings.steps_per_component:
        return state
    return with_interval_over(state, settings, held_out)


def with_interval_over(
    state: TrainState, settings: Settings, held_out: HeldOut | None
) -> TrainState:
    """The state with a history row for the steps since the last one, if there were any.

    A row holds means over the steps of its interval, and under `map` the number of maps in play.
    `gram_residual` is the root of the mean gram_error, of which an unbiased estimate may be
    negative: it then counts as zero.
    """
    count, total = state.interval
    if not count:
        return state
    row = {"step": sum(state.steps) + state.step, "map": state.k + settings.maps_at_once}
    row |= {name: value / count for name, value in zip(StepRecord._fields, total, strict=True)}
    row["gram_residual"] = max(row["gram_error"], 0.0) ** 0.5
    if held_out is not None:
        row |= held_out.row(state.params, state.readout)
    best = state.best
    if held_out is not None and settings.keeps_best:
        lowest = min((before["validation_loss"] for before in state.history), default=np.inf)
        best = state.params if row["validation_loss"] < lowest else best
    fresh_interval = (0, (0.0,) * len(total))
    return replace(state, interval=fresh_interval, history=(*state.history, row), best=best)


def has_converged(state: TrainState, settings: Settings) -> bool:
    """Whether the last `patience` rows of this turn have lowered none of the watched losses."""
    done, patience = sum(state.steps), settings.patience
    rows = [row for row in state.history if row["step"] > done]
    if patience is None or len(rows) <= patience:
        return False

    def has_stopped(name: str) -> bool:
        losses = [row[name] for row in rows]
        before, after = min(losses[:-patience]), min(losses[-patience:])
        return after >= before - TOLERANCE * abs(before)

    watched = LOSSES if settings.solver == "sequential" else ("validation_loss",)
    return all(has_stopped(name) for name in watched)
