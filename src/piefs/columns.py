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
from piefs.maps import ScalarMap, coordinates, is_single, n_maps
from piefs.metrics import Metric

BLOCK_ROWS = 8192
FORM_ELEMENTS = 2**23  # of the gradients of all maps that are in memory at a time


def blockwise(function: Callable[[np.ndarray], ArrayLike], x: np.ndarray) -> np.ndarray:
    """`function`, rows to rows, over all rows of x in blocks of one shape (the last is padded)."""
    return np.concatenate(
        [np.asarray(function(block))[:n] for block, n in _blocks(x)]
        or [np.asarray(function(np.zeros((1, *x.shape[1:]), x.dtype)))[:0]]
    )


def _blocks(x: np.ndarray, most: int = BLOCK_ROWS) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks of x with their true number of rows. Small tables use the next power of two."""
    size = min(BLOCK_ROWS, most, 1 << max(0, len(x) - 1).bit_length())
    for start in range(0, len(x), size):
        block = x[start : start + size]
        n = len(block)
        if n < size:
            block = np.concatenate([block, np.zeros((size - n, *x.shape[1:]), x.dtype)])
        yield block, n


_one_map = jax.jit(lambda phi, x: phi(x))
_all_maps = jax.jit(lambda maps, x: coordinates(maps, x))
_mixed_maps = jax.jit(lambda maps, mixing, x: coordinates(maps, x) @ mixing.T)
_log_scales = jax.jit(lambda metric, x: metric.log_scales(x))


@jax.jit
def _weighted_energy(phi: ScalarMap, metric: Metric, x: Array, weight: Array) -> Array:
    """Σ w_i ‖A∇φ(x_i)‖²; a block may hold padding alone, so it is a sum and not a mean."""
    _, gradient = phi.value_and_gradient(x)
    transformed = metric.apply(x, gradient)
    return jnp.sum(weight * dot(transformed, transformed))


@jax.jit
def _weighted_forms(maps: ScalarMap, metric: Metric, x: Array, weight: Array) -> Array:
    """Σ w_i (A∇φ_j)·(A∇φ_k)(x_i), shape (K, K)."""

    def transformed(phi: ScalarMap) -> Array:
        _, gradient = phi.value_and_gradient(x)
        return jnp.sqrt(weight)[:, None] * metric.apply(x, gradient).dense()

    vectors = jax.vmap(transformed)(maps)
    flat = vectors.reshape(vectors.shape[0], -1)
    return flat @ flat.T


def coordinates_of(maps: ScalarMap, x: np.ndarray, mixing: np.ndarray | None = None) -> np.ndarray:
    """Φ(x), shape (n, K), of a stack of maps, mixed if so asked, for any number of rows."""
    maps = jax.device_put(maps)  # once, not with every block
    if mixing is None:
        return blockwise(lambda block: _all_maps(maps, block), x)
    mixing = jax.device_put(mixing)
    return blockwise(lambda block: _mixed_maps(maps, mixing, block), x)


def dirichlet_matrix(maps: ScalarMap, metric: Metric, samples: Samples) -> np.ndarray:
    """⟨φ_j, φ_k⟩_mde over all samples, shape (K, K), in double precision."""
    size = max(1, FORM_ELEMENTS // (n_maps(maps) * samples.x.shape[1]))
    total = np.zeros((n_maps(maps), n_maps(maps)))
    for (x, _), (w, _) in zip(
        _blocks(samples.x, size), _blocks(samples.weights, size), strict=True
    ):
        total += np.asarray(_weighted_forms(maps, metric, x, w), dtype=np.float64)
    return total / samples.weights.sum(dtype=float)


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

    def append(self, phi: ScalarMap) -> None:
        """Freeze φ, or all maps of a stack, as the next columns."""
        self.values = self.with_active(phi)
        self.n_frozen += 1 if is_single(phi) else n_maps(phi)

    def with_active(self, phi: ScalarMap) -> np.ndarray:
        """The columns with φ, or the maps of a stack, in the next places, without freezing them."""
        active = _columns_of(phi, self.x)
        values = self.values.copy()
        values[:, self.n_frozen : self.n_frozen + active.shape[1]] = active
        return values

    def frozen_gram_error(self, weights: np.ndarray) -> float:
        """‖C − I‖²_F of the frozen columns over all rows, in double precision."""
        phi = self.values[:, : self.n_frozen].astype(np.float64)
        c = (phi * weights[:, None]).T @ phi / weights.sum(dtype=float)
        return float(np.sum((c - np.eye(self.n_frozen)) ** 2))


def _columns_of(phi: ScalarMap, x: np.ndarray) -> np.ndarray:
    if is_single(phi):
        return blockwise(lambda block: _one_map(phi, block), x)[:, None]
    return coordinates_of(phi, x)
