"""Training: map after map as in Algorithm 1 of the paper, or all maps at once.

In the sequential schedule frozen maps never change again, so φ_j(x), j < k, is a cached column
computed once: a step costs the same at every k, and no gradient can reach a frozen map. The joint
and the nested schedule are the same loop with a single turn, in which all maps descend (see
`piefs.core.objectives`); so is the spectral one, whose targets are the eigenmaps of a graph.
Training knows nothing of files or terminals; both hang on callbacks, called between chunks with a
state that a run can resume from. One that returns True ends the run: the maps are frozen as they
stand.

Steps after which a number is not finite are not taken: they are tried again at a smaller rate, from
the state before them, which a resumed run has too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from piefs.core.losses import ReadoutLoss, cross_entropy
from piefs.core.objectives import (
    Batch,
    JointObjective,
    Objective,
    SequentialObjective,
    SpectralObjective,
)
from piefs.training.batches import Samples, chunk_length, chunks, prefetched
from piefs.training.checks import SOLVERS
from piefs.training.columns import Columns
from piefs.training.config import Settings
from piefs.training.following import follow_maps, passes_mark
from piefs.training.history import HeldOut, Validation
from piefs.training.runtime import drop_compiled_if_many
from piefs.training.sharding import telling_of_loss
from piefs.training.state import (
    TrainState,
    WarmStart,
    has_converged,
    initial_state,
    rate_in_force,
    with_interval_over,
    with_rate_cut,
    with_steps_counted,
    with_turn_over,
)
from piefs.training.step import Steps, TurnLoss, descend

Callback = Callable[[TrainState], object]
"""Sees the state between chunks; what returns True asks for the run to end (see `callbacks`)."""


@telling_of_loss()
def train(
    samples: Samples,
    settings: Settings,
    *,
    n_outputs: int = 0,
    readout_loss: ReadoutLoss | None = cross_entropy,
    validation: Validation | None = None,
    warm_start: WarmStart | None = None,
    callbacks: Sequence[Callback] = (),
    state: TrainState | None = None,
) -> TrainState:
    """Train φ_1 … φ_K, one after the other (Algorithm 1) or all at once; then they are frozen.

    `readout_loss` None trains without labels; `callbacks` see the state after every chunk and
    every frozen map; `state` continues an earlier run. A batch larger than the data is clipped.
    Where a callback returns True, the maps that descend are frozen and no further one is begun:
    the final state then may have fewer than K.
    """
    _check(settings, n_outputs, readout_loss, validation)
    drop_compiled_if_many()
    objective = _objective(settings, readout_loss, samples)
    state = state or initial_state(samples, settings, n_outputs, warm_start)
    devices = samples.devices
    cache = Columns(samples.x, settings.n_components, state.frozen, devices)
    held_out = _held_out(validation, settings, objective, state)
    is_asked_to_end = False

    for k in range(state.k, settings.n_components, settings.maps_at_once):  # 1: for k = 1 to K do
        frozen_error = cache.frozen_gram_error(samples.weights)
        feed = _feed(samples, settings, k, state.step, cache)  # 3: θ_j fixed for all j < k
        descended = partial(_descended, samples, settings, objective, frozen_error, held_out)
        for batches in prefetched(feed):  # 2: until the budget is exhausted do
            if devices.any(is_asked_to_end or has_converged(state, settings)):
                break
            while (after := descended(state, *batches)) is None:  # 4, 5, 6: see `loss_on`
                state = with_rate_cut(state, settings)
            state = after
            is_asked_to_end = _any_asks_to_end(callbacks, state)
        state = with_interval_over(state, settings, held_out)
        if k + settings.maps_at_once < settings.n_components:  # later turns will need them
            for columns in (cache, *([held_out.columns] if held_out else [])):
                columns.append(state.params.phi)
        state = with_turn_over(state, settings, samples, warm_start)
        is_asked_to_end |= _any_asks_to_end(callbacks, state)
        if devices.any(is_asked_to_end):
            break
    return state


def _check(
    settings: Settings,
    n_outputs: int,
    readout_loss: ReadoutLoss | None,
    validation: Validation | None,
) -> None:
    if settings.solver not in SOLVERS:
        raise ValueError(f"unknown solver {settings.solver!r}; there are {SOLVERS}")
    if readout_loss is not None and n_outputs < 1:
        raise ValueError("a readout needs outputs: give n_outputs, or readout_loss=None")
    if settings.patience is not None and validation is None:
        raise ValueError("patience needs validation rows to watch")


def _objective(settings: Settings, readout_loss: ReadoutLoss | None, samples: Samples) -> Objective:
    # A batch of one row has no halves, and one of all rows is the population as far as is known.
    population_gram = settings.gram == "population" and 1 < settings.batch_size < len(samples)
    shared = {
        "readout_loss": readout_loss,
        "anisotropy": settings.metric.anisotropy,
        "population_gram": population_gram,
        "n_rows": samples.n_effective,
    }
    if settings.solver == "sequential":
        return SequentialObjective(settings.weighting, **shared)
    if settings.solver == "spectral":
        has_energy = settings.energy_weight > 0
        return SpectralObjective(settings.energy_weight, settings.metric.anisotropy, has_energy)
    prefix_weight = (settings.weighting.prefix or 0.0) if settings.solver == "nested" else 0.0
    return JointObjective(settings.weighting.orth, settings.energy_weight, prefix_weight, **shared)


def _held_out(
    validation: Validation | None, settings: Settings, objective: Objective, state: TrainState
) -> HeldOut | None:
    if validation is None:
        return None
    columns = Columns(validation.samples.x, settings.n_components, state.frozen)
    if isinstance(objective, SequentialObjective):
        # All validation rows count at once, so it is their own Gram matrix that is meant.
        objective = replace(objective, population_gram=False)
    needs_losses = settings.patience is not None and settings.solver == "sequential"
    return HeldOut(validation, columns, objective, needs_losses)


def _feed(
    samples: Samples, settings: Settings, k: int, first_step: int, cache: Columns
) -> Iterator[tuple[Batch, int, int]]:
    batch_size, total = min(settings.batch_size, len(samples)), settings.steps_per_component
    interval = min(settings.optimizer.log_every, total)
    length = chunk_length(batch_size, samples.x.shape[1], samples.x.dtype.itemsize, interval)
    return chunks(
        samples,
        cache.values,
        seed=settings.seed,
        k=k,
        batch_size=batch_size,
        first_step=first_step,
        n_steps=total,
        length=length,
        window=settings.optimizer.window,
    )


def _descended(
    samples: Samples,
    settings: Settings,
    objective: Objective,
    frozen_error: float,
    held_out: HeldOut | None,
    state: TrainState,
    chunk: Batch,
    first_step: int,
    n_steps: int,
) -> TrainState | None:
    """The state after the steps of a chunk, or None where a number is not finite any more."""
    devices = samples.devices
    params, opt_state, sums, is_finite = devices.here(
        descend(
            *devices.everywhere((state.params, state.opt_state)),
            chunk,
            TurnLoss(objective, state.k, frozen_error),
            Steps(
                first_step,
                n_steps,
                settings.steps_per_component,
                rate_in_force(state, settings),
                settings.weight_decay,
            ),
            optimizer=settings.optimizer.rule,
            mesh=devices.mesh,
        )
    )
    if devices.any(not is_finite):  # all processes go back, or none
        return None
    state = replace(state, step=first_step + n_steps, params=params, opt_state=opt_state)
    state = _with_metric_refreshed(state, settings, samples, n_steps)
    return with_steps_counted(state, settings, sums, n_steps, held_out)


def _any_asks_to_end(callbacks: Sequence[Callback], state: TrainState) -> bool:
    """Show the state to all callbacks; whether one of them returned True."""
    answers = [callback(state) for callback in callbacks]  # none is passed over
    return any(answers)


def _with_metric_refreshed(
    state: TrainState, settings: Settings, samples: Samples, n_steps: int
) -> TrainState:
    """The state, a metric that follows the maps set anew where a share of the steps is done."""
    metric, total = state.params.metric, settings.steps_per_component
    before = state.step - n_steps
    if not metric.follows_maps or not passes_mark(before, state.step, total):
        return state
    return replace(state, params=follow_maps(state.params, state.frozen, samples, settings.seed))
