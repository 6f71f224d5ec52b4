"""How many steps and how much weight decay: chosen on rows set aside; then all rows are used.

Few rows are soon learned by heart. A trial for each decay, on part of the rows, shows after how
many steps the readout's loss on the rest is lowest; the model proper then sees all rows, with the
best decay and as many steps, its rate falling to zero over just these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.model_selection import train_test_split

from piefs.batches import Samples
from piefs.history import Validation
from piefs.objective import ReadoutLoss
from piefs.train import Callback, TrainConfig, WarmStart, train

FEWEST_STEPS = 100
FEWEST_ROWS, MOST_ROWS = 100, 10_000
"""Where the number of steps is chosen by default: with fewer rows the ones set aside would tell
nothing, and with more there is little to learn by heart in the passes over them."""


def worth_choosing(n_rows: int, n_steps: int) -> bool:
    """Whether there are so few rows, and steps enough, that their number had better be chosen."""
    return FEWEST_ROWS <= n_rows < MOST_ROWS and n_steps > 2 * FEWEST_STEPS


def choose_budget(
    samples: Samples,
    config: TrainConfig,
    decays: Sequence[float],
    *,
    validation: Validation | None,
    fraction: float,
    scorer: Callable,
    n_outputs: int,
    readout_loss: ReadoutLoss | None,
    warm_start: WarmStart | None,
    callbacks: Sequence[Callback] = (),
) -> tuple[int, float]:
    """The steps after which the loss on validation rows was lowest, and the weight decay it had.

    There are at most as many steps as the config has. Without validation rows, a `fraction` of the
    labelled rows is set aside for them.
    """
    kept = samples
    if validation is None:
        rows, held = hold_out(samples, fraction, config.seed)
        kept, apart = samples.take(rows), samples.take(held)
        validation = Validation(apart, scorer(apart.targets))
    config = replace(config, batch_size=min(config.batch_size, len(kept)))
    tried = []
    for decay in decays:
        trial = train(
            kept,
            replace(config, weight_decay=decay),
            n_outputs=n_outputs,
            readout_loss=readout_loss,
            validation=validation,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        best = min(trial.history, key=lambda row: row["validation_loss"])
        tried.append((best["validation_loss"], best["step"], decay))
    _, step, decay = min(tried)
    steps = round(step * len(samples) / len(kept))
    return min(max(steps, FEWEST_STEPS), config.steps_per_component), decay


def hold_out(samples: Samples, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, and labelled rows set aside, class shares kept where that is possible."""
    labelled = np.flatnonzero(samples.label_weights > 0)
    n_held_out = max(1, round(fraction * len(labelled)))
    strata = strata_of(samples.targets[labelled], n_held_out)
    _, held = train_test_split(labelled, test_size=n_held_out, stratify=strata, random_state=seed)
    held = np.sort(np.asarray(held))
    return np.setdiff1d(np.arange(len(samples)), held), held


def strata_of(targets: np.ndarray | None, n_held_out: int) -> np.ndarray | None:
    """Class indices to keep the shares of, where every class can be on both sides."""
    if targets is None or targets.ndim > 1:
        return None
    counts = np.bincount(targets)
    counts = counts[counts > 0]
    return targets if counts.min() >= 2 and n_held_out >= len(counts) else None
