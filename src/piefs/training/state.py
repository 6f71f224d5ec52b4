"""A run between two chunks: how it begins, what each interval and each turn adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from piefs.core.agop import outer_product
from piefs.core.losses import Readout, init_readout
from piefs.core.maps import ScalarMap, init_map, is_single, stack, unstack
from piefs.core.metric import MetricField, init_metric
from piefs.core.networks import generator
from piefs.core.objectives import StepRecord, Trainable, all_maps_readout, init_prefix_readouts
from piefs.errors import DivergedError
from piefs.training.batches import Samples, some_rows
from piefs.training.columns import energies_of, log_scale_range
from piefs.training.config import TOLERANCE, Settings
from piefs.training.history import LOSSES, HeldOut, has_plateaued, means_of
from piefs.training.step import begun

RATE_CUT, MOST_RATE_CUTS = 4, 5
"""Where numbers do not stay finite, the rate is divided by this, so often at most in a run."""


@dataclass(frozen=True)
class WarmStart:
    """What to begin from instead of random maps, a fresh metric and a zero readout."""

    maps: Sequence[ScalarMap]
    metric: MetricField | None = None
    readout: Readout | None = None


@dataclass(frozen=True)
class TrainState:
    """A run between two chunks: enough to go on from here, and no more.

    `k` maps are frozen and `step` steps of the next turn (one map, or all) are done; `params` and
    `opt_state` belong to that turn. `energies` and `log_scale_ranges` hold one entry for each
    frozen map, `steps` one for each turn that is over; `interval` sums the step records since the
    last row of `history`. `rate_cuts` are the steps before which the learning rate was cut, since
    numbers had not stayed finite.
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
    rate_cuts: tuple[int, ...] = ()

    @property
    def maps(self) -> ScalarMap:
        """The maps as one stack: the frozen ones, then those that have begun to descend."""
        if not self.step and self.frozen:
            return stack(self.frozen)
        phi = self.params.phi
        return stack([*self.frozen, *([phi] if is_single(phi) else unstack(phi))])

    @property
    def readout(self) -> Readout:
        """The readout of all maps."""
        readout = self.params.readout
        return readout if readout.bias.ndim == 1 else all_maps_readout(readout)

    @property
    def is_between_turns(self) -> bool:
        """Whether maps have just been frozen."""
        return self.step == 0 and self.k > 0


def rate_in_force(state: TrainState, settings: Settings) -> float:
    """The learning rate at its highest, after all cuts."""
    return settings.learning_rate / RATE_CUT ** len(state.rate_cuts)


def with_rate_cut(state: TrainState, settings: Settings) -> TrainState:
    """The state with a smaller rate for what comes; an error where that has not helped before."""
    step = sum(state.steps) + state.step
    if len(state.rate_cuts) == MOST_RATE_CUTS:
        raise DivergedError(
            f"losses or parameters are not finite soon after step {step}, at smaller rates neither "
            f"(tried down to {rate_in_force(state, settings):.2g}): lower learning_rate (it is "
            f"{settings.learning_rate:g}), and see that no column has values far beyond its "
            "others, and no row a weight far beyond the others'",
            state,
        )
    return replace(state, rate_cuts=(*state.rate_cuts, step))


def initial_state(
    samples: Samples, settings: Settings, n_outputs: int, warm_start: WarmStart | None = None
) -> TrainState:
    """Nothing trained yet: the first maps, the metric and the readout as they begin."""
    dtype, n_features = samples.x.dtype, samples.x.shape[1]
    metric = fresh_metric(
        settings, generator(settings.seed, settings.n_components), n_features, dtype
    )
    readout = init_readout(n_outputs, settings.n_components, dtype)
    if warm_start is not None:
        metric, readout = warm_start.metric or metric, warm_start.readout or readout
    if settings.solver != "sequential":
        nested = settings.solver == "nested"
        stacked = init_prefix_readouts(n_outputs, settings.n_components, dtype, nested=nested)
        readout = jax.tree.map(np.add, stacked, readout)
    maps = initial_maps(settings, 0, samples, warm_start)
    params = jax.device_put(Trainable(maps, metric, readout))
    return TrainState(0, 0, params, begun(settings.optimizer.rule, params))


def fresh_metric(
    settings: Settings, random: np.random.Generator, n_features: int, dtype: Any
) -> MetricField:
    """The metric that the settings describe, as it begins."""
    return init_metric(
        settings.metric.name,
        random,
        n_features,
        settings.metric.widths,
        dtype,
        scope=settings.metric.scope,
        constraint=settings.metric.constraint,
        bound=settings.metric.bound,
        depth=settings.metric.depth,
    )


def initial_maps(
    settings: Settings, k: int, samples: Samples, warm_start: WarmStart | None
) -> ScalarMap:
    """Map k as it begins, or the stack of all maps where they descend together."""
    if settings.solver != "sequential":
        return stack(
            [_initial_map(settings, j, samples, warm_start) for j in range(settings.n_components)]
        )
    return _initial_map(settings, k, samples, warm_start)


def _initial_map(
    settings: Settings, k: int, samples: Samples, warm_start: WarmStart | None
) -> ScalarMap:
    if warm_start is not None:
        return jax.tree.map(jnp.array, warm_start.maps[k])
    n_features, dtype = samples.x.shape[1], samples.x.dtype
    return init_map(
        generator(settings.seed, k), n_features, settings.hidden, settings.activation, dtype
    )


def with_turn_over(
    state: TrainState, settings: Settings, samples: Samples, warm_start: WarmStart | None
) -> TrainState:
    """The state with the maps of this turn frozen and the next one begun; the rest carries on.

    Energies are taken with the metric as it is now, before later maps change it.
    """
    phi, metric = state.params.phi, state.params.metric
    params, k = state.params, state.k + settings.maps_at_once
    maps = [phi] if settings.solver == "sequential" else unstack(phi)
    if k < settings.n_components:
        fresh = initial_maps(settings, k, samples, warm_start)
        params = jax.device_put(Trainable(fresh, metric, state.params.readout))
    log_scales = (log_scale_range(metric, samples),) * len(maps)
    return replace(
        state,
        k=k,
        step=0,
        params=params,
        opt_state=begun(settings.optimizer.rule, params),
        frozen=(*state.frozen, *maps),
        energies=(*state.energies, *energies_of(stack(maps), metric, samples).tolist()),
        log_scale_ranges=(*state.log_scale_ranges, *log_scales),
        steps=(*state.steps, state.step),
    )


def has_converged(state: TrainState, settings: Settings) -> bool:
    """Whether the maps that descend now have stopped to improve on the validation rows."""
    done = sum(state.steps)
    rows = [row for row in state.history if row["step"] > done]
    watched = LOSSES if settings.solver == "sequential" else ("validation_loss",)
    return has_plateaued(rows, watched, settings.patience, TOLERANCE)


def with_steps_counted(
    state: TrainState,
    settings: Settings,
    sums: StepRecord,
    n_steps: int,
    held_out: HeldOut | None,
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
    """
    count, total = state.interval
    if not count:
        return state
    row = {"step": sum(state.steps) + state.step, "map": state.k + settings.maps_at_once}
    row |= means_of(total, count)
    if held_out is not None:
        row |= held_out.row(state.params, state.readout)
    fresh_interval = (0, (0.0,) * len(total))
    return replace(state, interval=fresh_interval, history=(*state.history, row))


# --- metrics that follow the maps --------------------------------------------------------------

N_MARKS = 20
"""How often in a turn a metric is set again: recursive feature machines take five to ten rounds,
but each of them solves for its predictor exactly."""

MOST_ROWS = 4096


def passes_mark(before: int, after: int, total: int) -> bool:
    """Whether the steps from `before` to `after` complete one of the turn's N_MARKS shares."""
    return before * N_MARKS // total < after * N_MARKS // total


def follow_maps(
    params: Trainable, frozen: Sequence[ScalarMap], samples: Samples, seed: int
) -> Trainable:
    """What descends, its metric set from all maps so far, on at most MOST_ROWS training rows."""
    maps = params.phi
    if is_single(maps):
        maps = stack([*frozen, maps])
    n = len(samples)
    rows = some_rows(seed, n, MOST_ROWS) if n > MOST_ROWS else slice(n)
    found = outer_product(maps, samples.x[rows], samples.weights[rows])
    metric: Any = params.metric
    return eqx.tree_at(lambda p: p.metric, params, metric.refreshed(found))


def with_metric_refreshed(
    state: TrainState, settings: Settings, samples: Samples, n_steps: int
) -> TrainState:
    """The state, its metric set from the maps again if a share of the turn's steps is done."""
    before, total = state.step - n_steps, settings.steps_per_component
    if not state.params.metric.follows_maps or not passes_mark(before, state.step, total):
        return state
    return replace(state, params=follow_maps(state.params, state.frozen, samples, settings.seed))
