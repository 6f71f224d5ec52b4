"""Training: map after map as in Algorithm 1 of the paper, or all maps at once.

In the sequential schedule frozen maps never change again, so φ_j(x), j < k, is a cached column
computed once: a step costs the same at every k, and no gradient can reach a frozen map. The joint
and the nested schedule are the same loop with a single turn, in which all maps descend (see
`joint`); so is the spectral one, whose targets are the eigenmaps of a graph. Training knows nothing
of files or terminals; both hang on callbacks, called between chunks with a state that a run can
resume from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from piefs.batches import Batch, Samples, chunk_length, chunks, prefetched
from piefs.columns import Columns, energy_of, log_scale_range
from piefs.following import follow_maps, passes_mark
from piefs.history import LOSSES, HeldOut, Validation, has_plateaued, means_of
from piefs.joint import (
    JointObjective,
    SpectralObjective,
    all_maps_readout,
    init_prefix_readouts,
)
from piefs.losses import Readout, cross_entropy, init_readout
from piefs.maps import ScalarMap, init_map, stack, unstack
from piefs.metrics import Metric, MetricFactory, init_metric
from piefs.objective import Loss, Objective, ReadoutLoss, StepRecord, Trainable, descend
from piefs.optimizers import Optimizer
from piefs.weighting import Dampened, Weighting

SCHEDULES = ("sequential", "joint", "nested", "spectral")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run, apart from the data. Defaults are the paper's.

    `gram` says whose Gram error is taken: the "batch"'s own (the paper) or an unbiased estimate of
    the "population"'s. `weighting` belongs to the sequential schedule; `orthogonality`,
    `smoothness` and `prefix_weight` to the joint and nested ones (see `JointObjective`).
    `steps_per_component` is the number of steps that each map takes: in turn, or all at once.

    With `patience`, a turn is over before its budget is spent when that many intervals of
    `log_every` steps in a row have lowered none of the three losses on the validation rows by
    `tolerance`, relatively. (Their weighted sum would not do: its weights change as they fall.)
    Where all maps descend at once, it is the readout's loss alone that counts.
    """

    schedule: str = "sequential"
    n_components: int = 16
    steps_per_component: int = 3750
    batch_size: int = 2048
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    optimizer: Optimizer = field(default_factory=Optimizer)
    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "relu"
    metric: str | MetricFactory = "off"
    metric_hidden: tuple[int, ...] = (64, 64)
    gram: str = "batch"
    metric_scope: str = "local"
    metric_constraint: str = "volume"
    metric_bound: float | None = None
    metric_depth: int | None = None
    weighting: Weighting = field(default_factory=Dampened)
    orthogonality: float = 0.1
    smoothness: float = 1e-3
    prefix_weight: float = 1.0
    anisotropy: float = 0.0
    patience: int | None = None
    tolerance: float = 1e-3
    log_every: int = 250
    seed: int = 0

    @property
    def maps_at_once(self) -> int:
        """How many maps descend together."""
        return 1 if self.schedule == "sequential" else self.n_components

    @property
    def total_steps(self) -> int:
        """The steps of all turns, if none stops early."""
        return self.steps_per_component * (self.n_components // self.maps_at_once)


@dataclass(frozen=True)
class WarmStart:
    """What to begin from instead of random maps, a fresh metric and a zero readout."""

    maps: Sequence[ScalarMap]
    metric: Metric | None = None
    readout: Readout | None = None


@dataclass(frozen=True)
class TrainState:
    """A run between two chunks: enough to go on from here, and no more.

    `k` maps are frozen and `step` steps of the next turn (one map, or all) are done; `params` and
    `opt_state` belong to that turn. `energies` and `log_scale_ranges` hold one entry for each
    frozen map, `steps` one for each turn that is over; `interval` sums the step records since the
    last row of `history`.
    """

    k: int
    step: int
    params: Trainable
    opt_state: optax.OptState
    frozen: tuple[ScalarMap, ...] = ()
    energies: tuple[float, ...] = ()
    log_scale_ranges: tuple[tuple[float, float], ...] = ()
    steps: tuple[int, ...] = ()
    interval: tuple[int, tuple[float, ...]] = (0, (0.0,) * len(StepRecord._fields))
    history: tuple[dict[str, float], ...] = ()

    @property
    def maps(self) -> ScalarMap:
        """The frozen maps as one stack."""
        return stack(self.frozen)

    @property
    def readout(self) -> Readout:
        """The readout of all maps."""
        readout = self.params.readout
        return readout if readout.bias.ndim == 1 else all_maps_readout(readout)


Callback = Callable[[TrainState], None]


def train(
    samples: Samples,
    config: TrainConfig,
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
    """
    _check(config, n_outputs, readout_loss, validation)
    objective = _objective(config, readout_loss, len(samples))
    state = state or initial_state(samples, config, n_outputs, warm_start)
    state = _own_copy(state)
    cache = Columns(samples.x, config.n_components, state.frozen)
    held_out = _held_out(validation, config, objective, state)

    for k in range(state.k, config.n_components, config.maps_at_once):  # 1: for k = 1 to K do
        frozen_error = cache.frozen_gram_error(samples.weights)
        feed = _feed(samples, config, k, state.step, cache)  # 3: θ_j fixed for all j < k
        for chunk, first_step, n_steps in prefetched(feed):  # 2: until the budget is exhausted do
            if _is_done(state, config):
                break
            params, opt_state, sums = descend(  # 4, 5, 6: see `Objective`
                state.params,
                state.opt_state,
                chunk,
                k=k,
                first_step=first_step,
                n_steps=n_steps,
                total_steps=config.steps_per_component,
                learning_rate=config.learning_rate,
                weight_decay=config.weight_decay,
                frozen_error=frozen_error,
                objective=objective,
                optimizer=config.optimizer,
            )
            state = replace(state, step=first_step + n_steps, params=params, opt_state=opt_state)
            state = _with_metric_refreshed(state, config, samples, n_steps)
            state = _logged(state, config, sums, n_steps, held_out)
            _notify(callbacks, state)
        for columns in (cache, *([held_out.columns] if held_out else [])):
            columns.append(state.params.phi)
        state = _frozen(state, config, samples, warm_start)
        _notify(callbacks, state)
    return state


def _check(
    config: TrainConfig,
    n_outputs: int,
    readout_loss: ReadoutLoss | None,
    validation: Validation | None,
) -> None:
    if config.schedule not in SCHEDULES:
        raise ValueError(f"unknown schedule {config.schedule!r}; there are {SCHEDULES}")
    if readout_loss is not None and n_outputs < 1:
        raise ValueError("a readout needs outputs: give n_outputs, or readout_loss=None")
    if config.patience is not None and validation is None:
        raise ValueError("patience needs validation rows to watch")


def _objective(config: TrainConfig, readout_loss: ReadoutLoss | None, n_rows: int) -> Loss:
    # A batch of one row has no halves, and one of all rows is the population as far as is known.
    population_gram = config.gram == "population" and 1 < config.batch_size < n_rows
    if config.schedule == "sequential":
        return Objective(config.weighting, readout_loss, config.anisotropy, population_gram)
    if config.schedule == "spectral":
        return SpectralObjective(config.smoothness, config.anisotropy)
    return JointObjective(
        config.orthogonality,
        config.smoothness,
        config.prefix_weight if config.schedule == "nested" else 0.0,
        readout_loss,
        population_gram=population_gram,
        anisotropy=config.anisotropy,
    )


def _held_out(
    validation: Validation | None, config: TrainConfig, objective: Loss, state: TrainState
) -> HeldOut | None:
    if validation is None:
        return None
    columns = Columns(validation.samples.x, config.n_components, state.frozen)
    if isinstance(
        objective, Objective
    ):  # all validation rows at once: their own Gram matrix counts
        objective = Objective(objective.weighting, objective.readout_loss, objective.anisotropy)
    needs_losses = config.patience is not None and config.schedule == "sequential"
    return HeldOut(validation, columns, objective, needs_losses)


def _own_copy(state: TrainState) -> TrainState:
    """A state whose buffers training may donate: the caller keeps the original."""
    params, opt_state = jax.tree.map(jnp.copy, (state.params, state.opt_state))
    return replace(state, params=params, opt_state=opt_state)


def initial_state(
    samples: Samples, config: TrainConfig, n_outputs: int, warm_start: WarmStart | None = None
) -> TrainState:
    """Nothing trained yet: the first maps, the metric and the readout as they begin."""
    dtype, n_features = samples.x.dtype, samples.x.shape[1]
    metric = fresh_metric(config, _key(config, config.n_components), n_features, dtype)
    readout = init_readout(n_outputs, config.n_components, dtype)
    if warm_start is not None:
        metric, readout = warm_start.metric or metric, warm_start.readout or readout
    if config.schedule != "sequential":
        nested = config.schedule == "nested"
        stacked = init_prefix_readouts(n_outputs, config.n_components, dtype, nested=nested)
        readout = jax.tree.map(lambda a, b: a + b, stacked, readout)
    params = Trainable(_initial_maps(config, 0, samples, warm_start), metric, readout)
    return TrainState(0, 0, params, config.optimizer.init(params))


def fresh_metric(config: TrainConfig, key: Array, n_features: int, dtype: Any) -> Metric:
    """The metric that the config describes, as it begins."""
    return init_metric(
        config.metric,
        key,
        n_features,
        config.metric_hidden,
        dtype,
        scope=config.metric_scope,
        constraint=config.metric_constraint,
        bound=config.metric_bound,
        depth=config.metric_depth,
    )


def _key(config: TrainConfig, stream: int) -> Array:
    """Stream k < K initialises φ_k, stream K the metric."""
    return jax.random.fold_in(jax.random.key(config.seed), stream)


def _initial_maps(
    config: TrainConfig, k: int, samples: Samples, warm_start: WarmStart | None
) -> ScalarMap:
    """Map k as it begins, or the stack of all maps where they descend together."""
    if config.schedule != "sequential":
        return stack(
            [_initial_map(config, j, samples, warm_start) for j in range(config.n_components)]
        )
    return _initial_map(config, k, samples, warm_start)


def _initial_map(
    config: TrainConfig, k: int, samples: Samples, warm_start: WarmStart | None
) -> ScalarMap:
    if warm_start is not None:
        return jax.tree.map(jnp.array, warm_start.maps[k])
    n_features, dtype = samples.x.shape[1], samples.x.dtype
    return init_map(_key(config, k), n_features, config.hidden, config.activation, dtype)


def _feed(
    samples: Samples, config: TrainConfig, k: int, first_step: int, cache: Columns
) -> Iterator[tuple[Batch, int, int]]:
    batch_size, total = min(config.batch_size, len(samples)), config.steps_per_component
    interval = min(config.log_every, total)
    length = chunk_length(batch_size, samples.x.shape[1], samples.x.dtype.itemsize, interval)
    return chunks(
        samples,
        cache.values,
        seed=config.seed,
        k=k,
        batch_size=batch_size,
        first_step=first_step,
        n_steps=total,
        length=length,
    )


def _notify(callbacks: Sequence[Callback], state: TrainState) -> None:
    for callback in callbacks:
        callback(state)


def _frozen(
    state: TrainState, config: TrainConfig, samples: Samples, warm_start: WarmStart | None
) -> TrainState:
    """The state with the maps of this turn frozen and the next one begun; the rest carries on.

    Energies are taken with the metric as it is now, before later maps change it.
    """
    phi, metric = state.params.phi, state.params.metric
    params, k = state.params, state.k + config.maps_at_once
    maps = [phi] if config.schedule == "sequential" else unstack(phi)
    if k < config.n_components:
        fresh = _initial_maps(config, k, samples, warm_start)
        params = Trainable(fresh, metric, state.params.readout)
    log_scales = (log_scale_range(metric, samples.x),) * len(maps)
    return replace(
        state,
        k=k,
        step=0,
        params=params,
        opt_state=config.optimizer.init(params),
        frozen=(*state.frozen, *maps),
        energies=(*state.energies, *(energy_of(one, metric, samples) for one in maps)),
        log_scale_ranges=(*state.log_scale_ranges, *log_scales),
        steps=(*state.steps, state.step),
    )


def _with_metric_refreshed(
    state: TrainState, config: TrainConfig, samples: Samples, n_steps: int
) -> TrainState:
    """The state, a metric that follows the maps set anew where a share of the steps is done."""
    metric, total = state.params.metric, config.steps_per_component
    before = state.step - n_steps
    if not metric.follows_maps or not passes_mark(before, state.step, total):
        return state
    return replace(state, params=follow_maps(state.params, state.frozen, samples, config.seed))


def _is_done(state: TrainState, config: TrainConfig) -> bool:
    """Whether the maps that descend now have stopped to improve on the validation rows."""
    done = sum(state.steps)
    rows = [row for row in state.history if row["step"] > done]
    watched = LOSSES if config.schedule == "sequential" else ("validation_loss",)
    return has_plateaued(rows, watched, config.patience, config.tolerance)


def _logged(
    state: TrainState,
    config: TrainConfig,
    sums: StepRecord,
    n_steps: int,
    held_out: HeldOut | None,
) -> TrainState:
    """The state with these steps counted, and a history row where an interval is complete.

    A row holds means over the steps of its interval, and under `map` the number of maps in play.
    A turn's last interval may be shorter than `log_every`.
    """
    count, total = state.interval
    # One by one: while numpy waits for a device's array, it takes Ctrl-C for a bad element.
    new = [float(value) for value in sums]
    count, total = count + n_steps, tuple(np.add(total, new).tolist())
    if count < config.log_every and state.step < config.steps_per_component:
        return replace(state, interval=(count, total))
    row = {"step": sum(state.steps) + state.step, "map": state.k + config.maps_at_once}
    row |= means_of(total, count)
    if held_out is not None:
        row |= held_out.row(state.params, state.readout)
    fresh_interval = (0, (0.0,) * len(total))
    return replace(state, interval=fresh_interval, history=(*state.history, row))
