"""The average gradient outer product of maps, and metrics that are set from it as maps train.

G = E Σ_k ∇φ_k∇φ_kᵀ. With ∇φ_k = u W₁ᵀ each term is W₁ E[uᵀu] W₁ᵀ: no (n, d) array is formed.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.maps import ScalarMap, is_single, stack
from piefs.core.objectives import Trainable
from piefs.training.batches import Samples, some_rows

N_MARKS = 20
"""How often in a turn a metric is set anew: recursive feature machines take five to ten rounds,
but each of them solves for its predictor exactly."""

MOST_ROWS = 4096


def outer_product(maps: ScalarMap, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """G of a stack of maps over weighted rows, shape (d, d), in double precision."""
    return np.asarray(_outer_product(maps, x, weights / weights.sum()), np.float64)


@jax.jit
def _outer_product(maps: ScalarMap, x: Array, weights: Array) -> Array:
    def add(total: Array, phi: ScalarMap) -> tuple[Array, None]:
        _, gradient = phi.value_and_gradient(x)
        second_moments = (gradient.u * weights[:, None]).T @ gradient.u
        return total + gradient.frame @ second_moments @ gradient.frame.T, None

    zero = jnp.zeros((x.shape[1], x.shape[1]), x.dtype)
    return jax.lax.scan(add, zero, maps)[0]


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
