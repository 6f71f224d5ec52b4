"""A run between two chunks: how it begins, what each turn adds to it, and what is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
from piefs.core.objectives import StepRecord, Trainable, for_prefixes
from piefs.errors import DivergedError
from piefs.training.batches import Samples, Validation, some_rows
from piefs.training.config import Settings
from piefs.training.evaluation import Columns, energies_of, log_scale_range
from piefs.training.step import begun

TOLERANCE = 1e-3  # a loss has stopped improving once it no longer falls by this share of itself
RATE_CUT, MOST_RATE_CUTS = 4, 5  # what the rate is divided by if numbers explode, and how often
NO_STEPS = (0, (0.0,) * len(StepRecord._fields))


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
    `opt_state` belong to that turn. `energies` and `log_scale_ranges` are those of the frozen maps,
    `steps` those of the turns that are over; `interval` sums the step records since the last row of
    `history`; `best` is what had the lowest validation loss, where that is kept. Before the
    `rate_cuts` numbers did not stay finite, and the learning rate was cut.
    """

    k: int
    step: int
    params: Trainable
    opt_state: optax.OptState
    frozen: tuple[ScalarMap, ...] = ()
    energies: tuple[float, ...] = ()
    log_scale_ranges: tuple[tuple[float, float], ...] = ()
    steps: tuple[int, ...] = ()
    interval: tuple[int, tuple[float, ...]] = NO_STEPS
    history: tuple[dict[str, float], ...] = ()
    best: Trainable | None = None
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
        """The readout of all maps, which is the last where each prefix has one."""
        readout = self.params.readout
        if readout.bias.ndim == 1:
            return readout
        return Readout(np.asarray(readout.weights)[-1], np.asarray(readout.bias)[-1])

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
            f"{settings.learning_rate:g}), and look for outliers among values and weights",
            state,
        )
    return replace(state, rate_cuts=(*state.rate_cuts, step))


def initial_state(
    samples: Samples, settings: Settings, n_outputs: int, warm_start: WarmStart | None = None
) -> TrainState:
    """Nothing trained yet: the first maps, the metric and the readout as they begin."""
    (_, n_features), dtype = samples.x.shape, samples.x.dtype
    random = generator(settings.seed, settings.n_components)
    metric = fresh_metric(settings, random, n_features, dtype)
    readout = init_readout(n_outputs, settings.n_components, dtype)
    if warm_start is not None:
        metric, readout = warm_start.metric or metric, warm_start.readout or readout
    if settings.solver != "sequential":
        readout = for_prefixes(readout, nested=settings.solver == "nested")
    maps = _initial_maps(settings, 0, samples, warm_start)
    params = jax.device_put(Trainable(maps, metric, readout))
    return TrainState(0, 0, params, begun(settings.optimizer.rule, params))


def fresh_metric(
    settings: Settings, random: np.random.Generator, n_features: int, dtype: Any
) -> MetricField:
    """The metric that the settings describe, as it begins."""
    m = settings.metric
    options = {"scope": m.scope, "constraint": m.constraint, "bound": m.bound, "depth": m.depth}
    return init_metric(m.name, random, n_features, m.widths, dtype, **options)


def _initial_maps(
    settings: Settings, k: int, samples: Samples, warm_start: WarmStart | None
) -> ScalarMap:
    """Map k as it begins, or the stack of all maps where they descend together."""
    n_features, dtype = samples.x.shape[1], samples.x.dtype

    def one(j: int) -> ScalarMap:
        if warm_start is not None:
            return jax.tree.map(jnp.array, warm_start.maps[j])
        random = generator(settings.seed, j)
        return init_map(random, n_features, settings.hidden, settings.activation, dtype)

    is_alone = settings.solver == "sequential"
    return one(k) if is_alone else stack([one(j) for j in range(settings.n_components)])


def with_turn_over(
    state: TrainState, settings: Settings, samples: Samples, warm_start: WarmStart | None
) -> TrainState:
    """The state with the maps of this turn frozen and the next one begun; the rest carries on.

    Energies are taken with the metric as it is now, before later maps change it.
    """
    params, k = state.best or state.params, state.k + settings.maps_at_once
    phi, metric = params.phi, params.metric
    maps = [phi] if is_single(phi) else unstack(phi)
    if k < settings.n_components:
        fresh = _initial_maps(settings, k, samples, warm_start)
        params = jax.device_put(Trainable(fresh, metric, params.readout))
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
        best=None,
    )


class HeldOut(NamedTuple):
    """The validation rows with the cached columns of their frozen maps."""

    validation: Validation
    columns: Columns


def recorded(
    state: TrainState, settings: Settings, held_out: HeldOut | None, *, is_cut_off: bool = False
) -> TrainState:
    """The state with a history row for the steps since the last one, if an interval is complete.

    It is after `log_every` steps, at the end of a turn, or if it `is_cut_off`. A row holds means
    over its steps, and under `map` the number of maps in play. `gram_residual` is the root of the
    mean gram_error, of which an unbiased estimate may be negative: it then counts as zero.
    """
    count, total = state.interval
    is_whole = count >= settings.optimizer.log_every or state.step >= settings.steps_per_component
    if not count or not (is_whole or is_cut_off):
        return state
    row = {"step": sum(state.steps) + state.step, "map": state.k + settings.maps_at_once}
    row |= {name: value / count for name, value in zip(StepRecord._fields, total, strict=True)}
    row["gram_residual"] = max(row["gram_error"], 0.0) ** 0.5
    best = state.best
    if held_out is not None:
        phi = held_out.columns.with_active(state.params.phi)
        row |= held_out.validation.score(np.asarray(state.readout(jnp.asarray(phi))))
        if settings.early_stopping:
            lowest = min((before["validation_loss"] for before in state.history), default=np.inf)
            best = state.params if row["validation_loss"] < lowest else best
    return replace(state, interval=NO_STEPS, history=(*state.history, row), best=best)


def has_converged(state: TrainState, settings: Settings) -> bool:
    """Whether the last `patience` intervals have not lowered the validation loss."""
    patience = settings.optimizer.patience
    if not settings.early_stopping or len(state.history) <= patience:
        return False
    losses = [row["validation_loss"] for row in state.history]
    before = min(losses[:-patience])
    return min(losses[-patience:]) >= before - TOLERANCE * abs(before)


# How often in a turn a metric is set again, and from how many rows: recursive feature machines take
# five to ten rounds, but each of them solves for its predictor exactly.
N_MARKS, MOST_ROWS = 20, 4096


def passes_mark(before: int, after: int, total: int) -> bool:
    """Whether the steps from `before` to `after` complete one of the turn's N_MARKS shares."""
    return before * N_MARKS // total < after * N_MARKS // total


def with_metric_refreshed(
    state: TrainState, settings: Settings, samples: Samples, before: int
) -> TrainState:
    """The state, its metric set from all maps so far if steps since `before` pass a mark."""
    metric: Any = state.params.metric
    is_due = passes_mark(before, state.step, settings.steps_per_component)
    if not (metric.follows_maps and is_due):
        return state
    n = len(samples)
    rows = some_rows(settings.seed, n, MOST_ROWS) if n > MOST_ROWS else slice(n)
    weights = samples.weights[rows]
    found = outer_product(state.maps, samples.x[rows], weights / weights.sum())
    params = eqx.tree_at(lambda p: p.metric, state.params, metric.refreshed(found))
    return replace(state, params=params)
