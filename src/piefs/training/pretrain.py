"""The optional graph-Laplacian warm start (paper, Sec. 2.5 and App. B).

Eigenmaps of a neighbourhood graph on a subsample (1,000 points) become targets, and each φ_k is
distilled against its eigenmap for 2,000 steps. Training then starts from these maps instead of
random ones. A larger subsample is taken block by block, so that a step costs no more.
"""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from piefs.core.maps import ScalarMap, init_map, stack, unstack
from piefs.core.networks import generator
from piefs.training.batches import some_rows

N_POINTS = 1000
N_STEPS = 2000
N_BETWEEN_LOOKS = 100


def distill(
    maps: ScalarMap,
    x: Array,
    targets: Array,
    n_steps: int = N_STEPS,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> ScalarMap:
    """A stack of K maps after `n_steps` of Adam on E|Φ(x) − targets|².

    A step sees all rows, or a block of those if there are more than 1,000, each in its turn: they
    are taken to be in random order. `watch` hears between chunks how many steps are done.
    """
    carry = maps, _adam(n_steps).init(eqx.filter(maps, eqx.is_array))
    for first in range(0, n_steps, N_BETWEEN_LOOKS):
        watch(first, n_steps)
        last = min(first + N_BETWEEN_LOOKS, n_steps)
        carry = jax.block_until_ready(_descended(carry, x, targets, first, last, n_steps))
    watch(n_steps, n_steps)
    return carry[0]


def _adam(n_steps: int) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(1e-3, n_steps))


@partial(jax.jit, static_argnames="n_steps")
def _descended(
    carry: tuple, x: Array, targets: Array, first: int, last: int, n_steps: int
) -> tuple:
    """Maps and the optimiser's state after the steps from `first` to `last`."""
    optimizer = _adam(n_steps)
    n_blocks = -(-len(x) // N_POINTS)
    length = -(-len(x) // n_blocks)

    def loss(maps: ScalarMap, x: Array, targets: Array) -> Array:
        return jnp.sum(jnp.mean((maps.coordinates(x) - targets) ** 2, axis=0))

    def step(i: int, carry: tuple) -> tuple:
        maps, opt_state = carry
        start = (i % n_blocks) * length  # the last block begins early enough to be whole
        block = [jax.lax.dynamic_slice_in_dim(rows, start, length) for rows in (x, targets)]
        updates, opt_state = optimizer.update(jax.grad(loss)(maps, *block), opt_state)
        return optax.apply_updates(maps, updates), opt_state

    return jax.lax.fori_loop(first, last, step, carry)


def subsample(n: int, seed: int, n_points: int = N_POINTS) -> np.ndarray:
    """The rows that the graph is built on: at most `n_points` of n, in random order."""
    return some_rows([seed, n], n, n_points)


def graph_laplacian_maps(
    x: np.ndarray,
    targets: np.ndarray,
    *,
    hidden: tuple[int, ...],
    activation: str,
    seed: int,
    n_steps: int = N_STEPS,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> list[ScalarMap]:
    """One map for each column of `targets` (the eigenmaps at x), distilled from a random start."""
    streams = (generator(seed, k) for k in range(targets.shape[1]))
    fresh = stack([init_map(one, x.shape[1], hidden, activation, x.dtype) for one in streams])
    return unstack(distill(fresh, jnp.asarray(x), jnp.asarray(targets, x.dtype), n_steps, watch))
