"""Coordinates of many rows, computed block by block and kept on the host.

Training caches the columns φ_j(x) of frozen maps here; everything that evaluates a fitted model on
a whole table goes through `blockwise`, whose fixed block shapes keep compilations few.
"""

from collections.abc import Callable, Iterable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from piefs.batches import Samples
from piefs.gradients import dot
from piefs.maps import ScalarMap, coordinates
from piefs.metrics import Metric

BLOCK_ROWS = 8192


def blockwise(function: Callable[[np.ndarray], ArrayLike], x: np.ndarray) -> np.ndarray:
    """`function`, rows to rows, over all rows of x in blocks of one shape (the last is padded)."""
    return np.concatenate(
        [np.asarray(function(block))[:n] for block, n in _blocks(x)]
        or [np.asarray(function(np.zeros((1, *x.shape[1:]), x.dtype)))[:0]]
    )


def _blocks(x: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks of x with their true number of rows. Small tables use the next power of two."""
    size = min(BLOCK_ROWS, 1 << max(0, len(x) - 1).bit_length())
    for start in range(0, len(x), size):
        block = x[start : start + size]
        n = len(block)
        if n < size:
            block = np.concatenate([block, np.zeros((size - n, *x.shape[1:]), x.dtype)])
        yield block, n


_one_map = jax.jit(lambda phi, x: phi(x))
_all_maps = jax.jit(coordinates)
_log_scales = jax.jit(lambda metric, x: metric.log_scales(x))


@jax.jit
def _weighted_energy(phi: ScalarMap, metric: Metric, x: Array, weight: Array) -> Array:
    """Σ w_i ‖A∇φ(x_i)‖²; a block may hold padding alone, so it is a sum and not a mean."""
    _, gradient = phi.value_and_gradient(x)
    transformed = metric.apply(x, gradient)
    return jnp.sum(weight * dot(transformed, transformed))


def coordinates_of(maps: ScalarMap, x: np.ndarray) -> np.ndarray:
    """Φ(x), shape (n, K), of a stack of maps, for any number of rows."""
    maps = jax.device_put(maps)  # once, not with every block
    return blockwise(lambda block: _all_maps(maps, block), x)


def energy_of(phi: ScalarMap, metric: Metric, samples: Samples) -> float:
    """⟨φ, φ⟩_mde over all samples."""
    blocks = zip(_blocks(samples.x), _blocks(samples.weights), strict=True)
    parts = [_weighted_energy(phi, metric, x, w) for (x, _), (w, _) in blocks]
    return float(np.sum(parts, dtype=float) / samples.weights.sum(dtype=float))


def log_scale_range(metric: Metric, x: np.ndarray) -> tuple[float, float]:
    """The least and greatest log λ_i(x) over all rows: how anisotropic the metric has become."""
    ranges = []
    for block, n in _blocks(x):
        log_scales = np.asarray(_log_scales(metric, block))[:n]
        ranges.append((log_scales.min(), log_scales.max()))
    low, high = np.array(ranges).T
    return float(low.min()), float(high.max())


class Columns:
    """The cached coordinates (n, K) of fixed rows; columns not yet frozen are zero."""

    def __init__(self, x: np.ndarray, n_components: int, frozen: Iterable[ScalarMap] = ()) -> None:
        self.x = x
        self.values = np.zeros((len(x), n_components), x.dtype)
        self.n_frozen = 0
        for phi in frozen:
            self.append(phi)

    def column(self, phi: ScalarMap) -> np.ndarray:
        """φ(x) on the fixed rows."""
        return blockwise(lambda block: _one_map(phi, block), self.x)

    def append(self, phi: ScalarMap) -> None:
        """Freeze φ as the next column."""
        self.values[:, self.n_frozen] = self.column(phi)
        self.n_frozen += 1

    def with_active(self, phi: ScalarMap) -> np.ndarray:
        """The columns with φ in the next place, without freezing it."""
        values = self.values.copy()
        values[:, self.n_frozen] = self.column(phi)
        return values
