"""Descent on the device: one jitted chunk of steps, the optimisers, and the learning rate.

`descend` minimises any loss over any chunk of batches. A loss is a pytree (an `equinox.Module`),
so that its numbers are traced and need no other program, with

    loss(params, batch, total) → (value, record),

where `record` is a pytree of numbers to be summed over the steps. What a loss sums over rows must
go through `total`, since a batch may be spread over devices (see `piefs.training.sharding`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, PartitionSpec
from jax.typing import ArrayLike

from piefs.core.losses import ReadoutLoss
from piefs.core.objectives import (
    JointObjective,
    Objective,
    SequentialObjective,
    SpectralObjective,
    Total,
    of_one_device,
)
from piefs.training.batches import Samples
from piefs.training.config import Optimizer, Settings
from piefs.training.sharding import ROWS

TRANSFORMS: dict[str, optax.GradientTransformation] = {
    "adam": optax.scale_by_adam(),
    "sgd": optax.trace(decay=0.9),
}


def objective_for(
    settings: Settings, readout_loss: ReadoutLoss | None, samples: Samples
) -> Objective:
    """What the settings ask to minimise on these rows."""
    # A batch of one row has no halves, and one of all rows is the population as far as is known.
    population_gram = settings.gram == "population" and 1 < settings.batch_size < len(samples)
    anisotropy, energy_weight = settings.metric.anisotropy, settings.energy_weight
    if settings.solver == "spectral":
        return SpectralObjective(energy_weight, anisotropy, has_energy=energy_weight > 0)
    shared = {
        "readout_loss": readout_loss,
        "anisotropy": anisotropy,
        "population_gram": population_gram,
        "n_rows": samples.n_effective,
    }
    if settings.solver == "sequential":
        return SequentialObjective(settings.weighting, **shared)
    prefix_weight = (settings.weighting.prefix or 0.0) if settings.solver == "nested" else 0.0
    return JointObjective(settings.weighting.orth, energy_weight, prefix_weight, **shared)


class Steps(NamedTuple):
    """Which steps to take out of how many, and how large they are. Numbers, hence traced."""

    first: ArrayLike
    n: ArrayLike
    total: ArrayLike
    learning_rate: ArrayLike
    weight_decay: ArrayLike = 0.0


@partial(jax.jit, static_argnames=("optimizer", "mesh"))
def descend(
    params: Any,
    opt_state: optax.OptState,
    chunk: Any,
    loss: Callable[[Any, Any, Total], tuple[Array, Any]],
    steps: Steps,
    *,
    optimizer: Optimizer,
    mesh: Mesh | None = None,
) -> tuple[Any, optax.OptState, Any, Array]:
    """Steps on a chunk's batches: parameters, state, the sums of the records, if all is finite.

    A chunk is a pytree of arrays with a leading axis of steps; it may be longer than `steps.n`.
    What is given is not donated: if numbers have become infinite, it is what to go back to. One
    compilation serves every map, budget and decay. The devices of a `mesh` share the rows.
    """
    is_alone = mesh is None
    total = of_one_device if is_alone else total_of_devices

    def run(chunk: Any, params: Any, opt_state: optax.OptState, loss: Any, steps: Steps) -> tuple:
        def step(i: ArrayLike, carry: tuple) -> tuple:
            params, opt_state, sums = carry
            batch = jax.tree.map(lambda a: a[i], chunk)
            grads, record = jax.grad(loss, has_aux=True)(params, batch, total)
            grads = grads if is_alone else added_up(grads)
            rate = rate_at(optimizer, steps.learning_rate, steps.first + i, steps.total)
            params, opt_state = moved(optimizer, params, grads, opt_state, rate, steps.weight_decay)
            return params, opt_state, jax.tree.map(jnp.add, sums, record)

        first = jax.tree.map(lambda a: a[0], chunk)
        record = jax.eval_shape(lambda: loss(params, first, of_one_device)[1])
        zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), record)
        end = jax.lax.fori_loop(0, steps.n, step, (params, opt_state, zeros))
        return *end, is_finite(end)

    if not is_alone:
        run = jax.shard_map(
            run,
            mesh=mesh,
            in_specs=(PartitionSpec(None, ROWS), *[PartitionSpec()] * 4),
            out_specs=PartitionSpec(),
            check_vma=False,  # `total_of_devices` says itself how it is differentiated
        )
    return run(chunk, params, opt_state, loss, steps)


def is_finite(tree: Any) -> Array:
    """Whether all numbers are: once one is not, it stays so to the end of a chunk."""
    leaves = [a for a in jax.tree.leaves(tree) if jnp.issubdtype(a.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in leaves]))


def added_up(tree: Any) -> Any:
    """A tree's arrays, added up over all devices: one message, whatever the number of arrays."""
    flat, restore = ravel_pytree(tree)
    return restore(jax.lax.psum(flat, ROWS))


@jax.custom_vjp
def total_of_devices(sums: Any) -> Any:
    """Sums over a device's own rows, added up over all devices that share a batch.

    A loss of the totals is the same on all devices, and so is its derivative by them, which is
    that by each device's own sums: going backwards takes no message. What a device then has is its
    own rows' part of the gradient.
    """
    return added_up(sums)


total_of_devices.defvjp(lambda sums: (added_up(sums), None), lambda _, slope: (slope,))


def begun(optimizer: Optimizer, params: Any) -> optax.OptState:
    """An optimiser's fresh state for these parameters."""
    shapes = jax.eval_shape(TRANSFORMS[optimizer.name].init, params)
    zeros = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), shapes)  # both begin at zero
    return jax.device_put(zeros)


def rate_at(optimizer: Optimizer, peak: Any, step: Any, total_steps: Any) -> Any:
    """The learning rate of a step, counted from 0: it climbs, then falls as a cosine."""
    warm = optimizer.warmup * total_steps
    falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - warm) / (total_steps - warm)))
    if not optimizer.warmup:
        return peak * falling
    rising = (step + 1) / jnp.maximum(warm, 1)
    return peak * jnp.where(step + 1 < warm, rising, falling)


def moved(
    optimizer: Optimizer,
    params: Any,
    grads: Any,
    state: optax.OptState,
    rate: ArrayLike,
    weight_decay: ArrayLike = 0.0,
) -> tuple[Any, optax.OptState]:
    """Parameters and state after a step; weights shrink by rate × weight_decay (AdamW)."""
    updates, state = TRANSFORMS[optimizer.name].update(grads, state, params)

    def after(path: tuple, param: Array, update: Array) -> Array:
        if any(getattr(key, "name", None) == "weights" for key in path):
            update = update + weight_decay * param
        return (param - rate * update).astype(param.dtype)

    return jax.tree_util.tree_map_with_path(after, params, updates), state
