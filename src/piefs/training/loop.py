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

from collections.abc import Callable, Sequence
from dataclasses import replace

from piefs.core.losses import ReadoutLoss, cross_entropy
from piefs.core.objectives import Batch, StepRecord
from piefs.training.batches import Samples, feed
from piefs.training.checks import SOLVERS
from piefs.training.columns import Columns
from piefs.training.config import Settings
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
    with_metric_refreshed,
    with_rate_cut,
    with_steps_counted,
    with_turn_over,
)
from piefs.training.step import Steps, TurnLoss, descend, objective_for

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
    objective = objective_for(settings, readout_loss, samples)
    state = state or initial_state(samples, settings, n_outputs, warm_start)
    devices, K = samples.devices, settings.n_components
    columns = Columns(samples.x, K, state.frozen, devices)  # φ_j(x) of frozen maps, computed once
    held_out = HeldOut.of(validation, settings, objective, state.frozen)
    is_over = False

    for k in range(state.k, K, settings.maps_at_once):  # 1: for k = 1 to K do
        loss = TurnLoss(objective, k, columns.frozen_gram_error(samples.weights))  # 3: θ_j fixed
        for chunk in feed(samples, columns.values, settings, k, state.step):  # 2: until the budget
            if devices.any(is_over or has_converged(state, settings)):  # is exhausted do
                break
            state, sums = _stepped(state, chunk, loss, samples, settings)  # 4, 5, 6: see `loss_on`
            state = with_steps_counted(state, settings, sums, chunk[2], held_out)
            is_over = _any_asks_to_end(callbacks, state)
        state = with_interval_over(state, settings, held_out)
        if k + settings.maps_at_once < K:  # later turns will need them
            for cache in (columns, *([held_out.columns] if held_out else [])):
                cache.append(state.params.phi)
        state = with_turn_over(state, settings, samples, warm_start)
        is_over |= _any_asks_to_end(callbacks, state)
        if devices.any(is_over):
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


def _stepped(
    state: TrainState,
    chunk: tuple[Batch, int, int],
    loss: TurnLoss,
    samples: Samples,
    settings: Settings,
) -> tuple[TrainState, StepRecord]:
    """The state after the steps of a chunk, and the sums of their records.

    If a number is not finite after them, they are taken again at a smaller rate.
    """
    devices, (batches, first_step, n_steps) = samples.devices, chunk
    given = devices.everywhere((state.params, state.opt_state))
    while True:
        steps = Steps(
            first_step,
            n_steps,
            settings.steps_per_component,
            rate_in_force(state, settings),
            settings.weight_decay,
        )
        rule = settings.optimizer.rule
        after = descend(*given, batches, loss, steps, optimizer=rule, mesh=devices.mesh)
        params, opt_state, sums, is_finite = devices.here(after)
        if not devices.any(not is_finite):  # all processes go back, or none
            break
        state = with_rate_cut(state, settings)
    state = replace(state, step=first_step + n_steps, params=params, opt_state=opt_state)
    return with_metric_refreshed(state, settings, samples, n_steps), sums


def _any_asks_to_end(callbacks: Sequence[Callback], state: TrainState) -> bool:
    """Show the state to all callbacks; whether one of them returned True."""
    answers = [callback(state) for callback in callbacks]  # none is passed over
    return any(answers)
