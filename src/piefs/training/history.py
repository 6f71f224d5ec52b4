"""What is recorded of a run while it trains: losses, weights, and scores on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from piefs.core.losses import Readout
from piefs.core.maps import ScalarMap
from piefs.core.objectives import Batch, Objective, SequentialObjective, StepRecord, Trainable
from piefs.training.batches import Samples
from piefs.training.columns import Columns
from piefs.training.config import Settings
from piefs.training.step import TurnLoss, losses_on

LOSSES = {
    "validation_gram_error": "gram_error",
    "validation_loss_class": "loss_class",
    "validation_loss_mde": "loss_mde",
}
"""What map-after-map training watches: columns of the history, and the losses they hold."""

Row = dict[str, float]


@dataclass(frozen=True)
class Validation:
    """Held-out rows, and what to record of the readout's outputs on them."""

    samples: Samples
    score: Callable[[np.ndarray], Row] = lambda outputs: {}


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


def means_of(sums: Sequence[float], count: int) -> Row:
    """The means of an interval's records; `gram_residual` is the root of the mean gram_error.

    An unbiased estimate of a Gram error may be negative; its residual counts as zero.
    """
    means = {name: value / count for name, value in zip(StepRecord._fields, sums, strict=True)}
    return means | {"gram_residual": max(means["gram_error"], 0.0) ** 0.5}


def has_plateaued(
    rows: Sequence[Row], watched: Iterable[str], patience: int | None, tolerance: float
) -> bool:
    """Whether the last `patience` rows of a turn have lowered none of the watched columns."""
    if patience is None or len(rows) <= patience:
        return False
    earlier, latest = rows[:-patience], rows[-patience:]

    def lowest(rows: Sequence[Row], name: str) -> float:
        return min(row[name] for row in rows)

    def is_lower(name: str) -> bool:
        before = lowest(earlier, name)
        return lowest(latest, name) < before - tolerance * abs(before)

    return not any(is_lower(name) for name in watched)
