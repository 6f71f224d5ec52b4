"""Algorithm 1 of the paper: sequential block-coordinate descent.

Frozen maps never change again, so φ_j(x), j < k, is a cached column computed once: a step costs
the same at every k, and no gradient can reach a frozen map. Training knows nothing of files or
terminals; both hang on callbacks, called between chunks with a state that a run can resume from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from piefs.batches import Batch, Samples, chunk_length, chunks, prefetched
from piefs.columns import Columns, energy_of, log_scale_range
from piefs.losses import Readout, cross_entropy, init_readout
from piefs.maps import ScalarMap, init_map, stack
from piefs.metrics import Metric, MetricFactory, init_metric
from piefs.objective import (
    Objective,
    ReadoutLoss,
    StepRecord,
    Trainable,
    descend,
    init_optimizer,
    losses_on,
)
from piefs.weighting import Dampened, Weighting

WATCHED = {
    "validation_gram_error": "gram_error",
    "validation_loss_class": "loss_class",
    "validation_loss_mde": "loss_mde",
}
"""What `patience` watches: columns of the history, and the losses they hold."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run, apart from the data. Defaults are the paper's.

    With `patience`, a map is done before its budget is spent when that many intervals of
    `log_every` steps in a row have lowered none of the three losses on the validation rows by
    `tolerance`, relatively. (Their weighted sum would not do: its weights change as they fall.)
    """

    n_components: int = 16
    steps_per_component: int = 3750
    batch_size: int = 2048
    learning_rate: float = 1e-3
    optimizer: str = "adam"
    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "relu"
    metric: str | MetricFactory = "off"
    metric_hidden: tuple[int, ...] = (64, 64)
    weighting: Weighting = field(default_factory=Dampened)
    anisotropy: float = 0.0
    patience: int | None = None
    tolerance: float = 1e-3
    log_every: int = 250
    seed: int = 0


@dataclass(frozen=True)
class Validation:
    """Held-out rows, and what to record of the readout's outputs on them."""

    samples: Samples
    score: Callable[[np.ndarray], dict[str, float]] = lambda outputs: {}


@dataclass(frozen=True)
class WarmStart:
    """What to begin from instead of random maps, a fresh metric and a zero readout."""

    maps: Sequence[ScalarMap]
    metric: Metric | None = None
    readout: Readout | None = None


@dataclass(frozen=True)
class TrainState:
    """A run between two chunks: enough to go on from here, and no more.

    `k` maps are frozen and `step` steps of the next one are done; `params` and `opt_state` belong
    to that next map. `energies`, `log_scale_ranges` and `steps` hold one entry for each frozen
    map; `interval` sums the step records since the last row of `history`.
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
    """Train φ_1 … φ_K one after the other, freezing each (Algorithm 1).

    `readout_loss` None trains without labels; `callbacks` see the state after every chunk and
    every frozen map; `state` continues an earlier run. A batch larger than the data is clipped.
    """
    _check(config, n_outputs, readout_loss, validation)
    objective = Objective(config.weighting, readout_loss, config.anisotropy)
    state = state or initial_state(samples, config, n_outputs, warm_start)
    state = _own_copy(state)
    cache = Columns(samples.x, config.n_components, state.frozen)
    held_out = _HeldOut.of(validation, config, objective, state)

    for k in range(state.k, config.n_components):  # 1: for k = 1 to K do
        feed = _feed(samples, config, k, state.step, cache)  # 3: θ_j fixed for all j < k
        for chunk, first_step, n_steps in prefetched(feed):  # 2: until the budget is exhausted do
            if _has_plateaued(state, config):
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
                objective=objective,
                optimizer=config.optimizer,
            )
            state = replace(state, step=first_step + n_steps, params=params, opt_state=opt_state)
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
    if readout_loss is not None and n_outputs < 1:
        raise ValueError("a readout needs outputs: give n_outputs, or readout_loss=None")
    if config.patience is not None and validation is None:
        raise ValueError("patience needs validation rows to watch")


def _own_copy(state: TrainState) -> TrainState:
    """A state whose buffers training may donate: the caller keeps the original."""
    params, opt_state = jax.tree.map(jnp.copy, (state.params, state.opt_state))
    return replace(state, params=params, opt_state=opt_state)


def initial_state(
    samples: Samples, config: TrainConfig, n_outputs: int, warm_start: WarmStart | None = None
) -> TrainState:
    """Nothing trained yet: the first map, the metric and the readout as they begin."""
    dtype, n_features = samples.x.dtype, samples.x.shape[1]
    metric = init_metric(
        config.metric, _key(config, config.n_components), n_features, config.metric_hidden, dtype
    )
    readout = init_readout(n_outputs, config.n_components, dtype)
    if warm_start is not None:
        metric, readout = warm_start.metric or metric, warm_start.readout or readout
    params = Trainable(_initial_map(config, 0, samples, warm_start), metric, readout)
    return TrainState(0, 0, params, init_optimizer(config.optimizer, params))


def _key(config: TrainConfig, stream: int) -> Array:
    """Stream k < K initialises φ_k, stream K the metric."""
    return jax.random.fold_in(jax.random.key(config.seed), stream)


def _initial_map(
    config: TrainConfig, k: int, samples: Samples, warm_start: WarmStart | None
) -> ScalarMap:
    if warm_start is not None:
        return jax.tree.map(jnp.copy, warm_start.maps[k])
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
    """The state with φ_k frozen and the next map begun; metric and readout carry on.

    The energy is taken with the metric as it is now, before later maps change it.
    """
    phi, metric = state.params.phi, state.params.metric
    params, k = state.params, state.k + 1
    if k < config.n_components:
        fresh = _initial_map(config, k, samples, warm_start)
        params = Trainable(fresh, metric, state.params.readout)
    return replace(
        state,
        k=k,
        step=0,
        params=params,
        opt_state=init_optimizer(config.optimizer, params),
        frozen=(*state.frozen, phi),
        energies=(*state.energies, energy_of(phi, metric, samples)),
        log_scale_ranges=(*state.log_scale_ranges, log_scale_range(metric, samples.x)),
        steps=(*state.steps, state.step),
    )


@dataclass
class _HeldOut:
    """The validation rows with their cached columns, and what a history row says of them."""

    validation: Validation
    columns: Columns
    objective: Objective
    needs_loss: bool

    @classmethod
    def of(
        cls,
        validation: Validation | None,
        config: TrainConfig,
        objective: Objective,
        state: TrainState,
    ) -> _HeldOut | None:
        if validation is None:
            return None
        columns = Columns(validation.samples.x, config.n_components, state.frozen)
        return cls(validation, columns, objective, config.patience is not None)

    def row(self, state: TrainState) -> dict[str, float]:
        phi = self.columns.with_active(state.params.phi)
        row = self.validation.score(np.asarray(state.params.readout(jnp.asarray(phi))))
        if self.needs_loss:
            rows = self.validation.samples
            batch = Batch(
                *map(jnp.asarray, (rows.x, self.columns.values, rows.targets)),
                *map(jnp.asarray, (rows.weights, rows.label_weights)),
            )
            losses = losses_on(state.params, batch, state.k, objective=self.objective)
            row |= {name: float(getattr(losses, field)) for name, field in WATCHED.items()}
        return row


def _logged(
    state: TrainState,
    config: TrainConfig,
    sums: StepRecord,
    n_steps: int,
    held_out: _HeldOut | None,
) -> TrainState:
    """The state with these steps counted, and a history row where an interval is complete.

    A row holds means over the steps of its interval; `gram_residual` is the root of the mean
    squared residual. A map's last interval may be shorter than `log_every`.
    """
    count, total = state.interval
    # One by one: while numpy waits for a device's array, it takes Ctrl-C for a bad element.
    new = [float(value) for value in sums]
    count, total = count + n_steps, tuple(np.add(total, new).tolist())
    if count < config.log_every and state.step < config.steps_per_component:
        return replace(state, interval=(count, total))
    means = StepRecord(*(value / count for value in total))
    row = {"step": sum(state.steps) + state.step, "map": state.k + 1}
    row |= means._asdict() | {"gram_residual": means.gram_error**0.5}
    if held_out is not None:
        row |= held_out.row(state)
    fresh_interval = (0, (0.0,) * len(total))
    return replace(state, interval=fresh_interval, history=(*state.history, row))


def _has_plateaued(state: TrainState, config: TrainConfig) -> bool:
    """Whether the last `patience` intervals of the current map have lowered none of its losses."""
    rows = [row for row in state.history if row["map"] == state.k + 1]
    if config.patience is None or len(rows) <= config.patience:
        return False
    earlier, latest = rows[: -config.patience], rows[-config.patience :]

    def lowest(rows: Sequence[dict[str, float]], name: str) -> float:
        return min(row[name] for row in rows)

    return all(
        lowest(latest, name) >= lowest(earlier, name) * (1 - config.tolerance) for name in WATCHED
    )
