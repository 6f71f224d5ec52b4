"""Training: map after map as in Algorithm 1 of the paper, or all maps at once.

In the sequential schedule frozen maps never change again, so φ_j(x), j < k, is a cached column
computed once: a step costs the same at every k, and no gradient can reach a frozen map. The other
schedules are the same loop with a single turn, in which all maps descend (`core.objectives`).
Training knows nothing of files or terminals; both hang on callbacks, called between chunks with a
state that a run can resume from.
"""

from collections.abc import Sequence
from dataclasses import replace

from piefs.core.losses import ReadoutLoss, cross_entropy
from piefs.core.objectives import Batch, Objective
from piefs.training.batches import Samples, Validation, feed
from piefs.training.callbacks import Callback
from piefs.training.config import Settings
from piefs.training.evaluation import Columns
from piefs.training.runtime import drop_compiled_if_many
from piefs.training.sharding import telling_of_loss
from piefs.training.state import (
    HeldOut,
    TrainState,
    WarmStart,
    has_converged,
    initial_state,
    rate_in_force,
    recorded,
    with_metric_refreshed,
    with_rate_cut,
    with_turn_over,
)
from piefs.training.step import Steps, descend, objective_for


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
    drop_compiled_if_many()
    objective = objective_for(settings, readout_loss, samples)
    state = state or initial_state(samples, settings, n_outputs, warm_start)
    devices, K, at_once = samples.devices, settings.n_components, settings.maps_at_once
    columns = Columns(samples.x, K, state.frozen, devices)  # φ_j(x) of frozen maps, computed once
    held_out = validation and HeldOut(validation, Columns(validation.x, K, state.frozen))
    caches = [columns, held_out.columns] if held_out else [columns]
    is_over = False

    for k in range(state.k, K, at_once):  # 1: for k = 1 to K do
        loss = objective.after(k, columns.frozen_gram_error(samples.weights))  # 3: fix θ_j
        for chunk in feed(samples, columns.values, settings, k, state.step):  # 2: until the budget
            if devices.any(is_over or has_converged(state, settings)):  # is exhausted do
                break
            state = _stepped(state, chunk, loss, samples, settings)  # 4, 5, 6: the objective
            state = recorded(state, settings, held_out)
            is_over = True in [callback(state) for callback in callbacks]  # none is passed over
        state = recorded(state, settings, held_out, is_cut_off=True)
        for cache in caches if k + at_once < K else ():  # later turns will need the columns
            cache.append(state.params.phi)
        state = with_turn_over(state, settings, samples, warm_start)
        if devices.any(True in [callback(state) for callback in callbacks] or is_over):
            break
    return state


def _stepped(
    state: TrainState,
    chunk: tuple[Batch, int, int],
    loss: Objective,
    samples: Samples,
    settings: Settings,
) -> TrainState:
    """The state after the steps of a chunk.

    If a number is not finite after them, they are taken again at a smaller rate.
    """
    devices, (batches, first, n_steps) = samples.devices, chunk
    total, rule = settings.steps_per_component, settings.optimizer.rule
    given = devices.everywhere((state.params, state.opt_state))
    while True:
        rate = rate_in_force(state, settings)
        steps = Steps(first, n_steps, total, rate, settings.weight_decay)
        after = descend(*given, batches, loss, steps, optimizer=rule, mesh=devices.mesh)
        params, opt_state, sums, is_finite = devices.here(after)
        if not devices.any(not is_finite):  # all processes go back, or none
            break
        state = with_rate_cut(state, settings)
    count, before = state.interval
    # One by one: while numpy waits for a device's array, it takes Ctrl-C for a bad element.
    total = tuple(a + float(b) for a, b in zip(before, sums, strict=True))
    state = replace(
        state,
        step=first + n_steps,
        params=params,
        opt_state=opt_state,
        interval=(count + n_steps, total),
    )
    return with_metric_refreshed(state, settings, samples, first)
