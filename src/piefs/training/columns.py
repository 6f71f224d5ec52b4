"""Coordinates of many rows, computed block by block and kept on the host.

Training caches the columns φ_j(x) of frozen maps here; everything that evaluates a fitted model on
a whole table goes through `blockwise`, whose fixed block shapes keep compilations few.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from piefs.core.gradients import dot
from piefs.core.maps import ScalarMap, is_single, n_maps
from piefs.core.metric import MetricField
from piefs.core.model import Model
from piefs.data.rows import Rows, ScaledRows, scratch
from piefs.training.batches import Samples
from piefs.training.sharding import ONE, Devices

BLOCK_ROWS = 8192
BLOCK_ELEMENTS = 2**24  # of a block of coordinates or outputs
GRAM_ROWS = 2**18
ENERGY_ROWS = 2**18  # that energies are taken over: beyond, their error is some thousandths
FORM_ELEMENTS = 2**23  # of the gradients of all maps that are in memory at a time


def blockwise(
    function: Callable[[np.ndarray], ArrayLike],
    x: Rows,
    devices: Devices = ONE,
    most: int = BLOCK_ROWS,
) -> np.ndarray:
    """`function`, rows to rows, over all rows of x in blocks of one shape (the last is padded).

    Processes that share the devices share the work, too. A block has at most `most` rows.
    """
    if devices.n_processes == 1:
        return _blockwise(function, x, most)
    values = None
    compute = lambda rows: _blockwise(function, x[rows], most)  # noqa: E731
    for rows, found in devices.rows_shared_out(compute, len(x)):
        if values is None:
            values = scratch((len(x), *found.shape[1:]), found.dtype)
        values[rows] = found
    return _blockwise(function, x, most) if values is None else values


def _blockwise(function: Callable[[np.ndarray], ArrayLike], x: Rows, most: int) -> np.ndarray:
    if not len(x):
        return np.asarray(function(np.zeros((1, *x.shape[1:]), x.dtype)))[:0]
    values, start = None, 0
    for block, n in _blocks(x, most):
        found = np.asarray(function(block))[:n]
        if values is None:
            values = scratch((len(x), *found.shape[1:]), found.dtype)
        values[start : start + n] = found
        start += n
    return values  # type: ignore[return-value]


def _blocks(
    x: Rows, most: int = BLOCK_ROWS, most_rows: int | None = None, devices: Devices = ONE
) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks of x with their true number of rows; of several processes, each has its share.

    Small tables use the next power of two. Where there are more than `most_rows`, blocks of about
    so many in all, spread evenly.
    """
    size = min(BLOCK_ROWS, most, 1 << max(0, len(x) - 1).bit_length())
    step = size if most_rows is None else size * -(-len(x) // max(most_rows, size))
    for start in devices.share_of(range(0, len(x), step)):
        block = x[start : start + size]
        n = len(block)
        if n < size:
            block = np.concatenate([block, np.zeros((size - n, *x.shape[1:]), x.dtype)])
        yield block, n


_one_map = jax.jit(lambda phi, x: phi(x))
_all_maps = jax.jit(lambda maps, x: maps.coordinates(x))
_log_scales = jax.jit(lambda metric, x: metric.log_scales(x))
_PROGRAMS = {
    "coordinates": jax.jit(lambda model, z: model.of_scaled(z)),
    "outputs": jax.jit(lambda model, z: model.readout(model.of_scaled(z))),
}


@jax.jit
def _weighted_energies(maps: ScalarMap, metric: MetricField, x: Array, weight: Array) -> Array:
    """Σ w_i ‖A∇φ_k(x_i)‖², shape (K,); a block may hold padding, so it is a sum and not a mean."""

    def energy(phi: ScalarMap) -> Array:
        _, gradient = phi.value_and_gradient(x)
        transformed = metric.apply(x, gradient)
        return jnp.sum(weight * dot(transformed, transformed))

    return jax.lax.map(energy, maps)


@jax.jit
def _weighted_forms(maps: ScalarMap, metric: MetricField, x: Array, weight: Array) -> Array:
    """Σ w_i (A∇φ_j)·(A∇φ_k)(x_i), shape (K, K)."""

    def transformed(phi: ScalarMap) -> Array:
        _, gradient = phi.value_and_gradient(x)
        return jnp.sqrt(weight)[:, None] * metric.apply(x, gradient).dense()

    vectors = jax.vmap(transformed)(maps)
    flat = vectors.reshape(vectors.shape[0], -1)
    return flat @ flat.T


def evaluate(
    model: Model,
    x: Rows,
    what: str = "coordinates",
    *,
    devices: Devices = ONE,
    finish: Callable[[np.ndarray], np.ndarray] = lambda values: values,
) -> np.ndarray:
    """The model's "coordinates", (n, K), or "outputs", (n, n_outputs), of any number of rows.

    Rows are scaled block by block in double precision, then rounded to the model's own: a column
    at 10⁶ ± 1 would lose its digits in single. `finish` makes of each block what is kept of it.
    """
    if model.scaling is not None:
        x = ScaledRows(x, model.scaling.center, model.scaling.scale, model.dtype)
    width = len(model.readout.bias) if what == "outputs" else len(model.mixing)
    with jax.enable_x64(model.dtype == np.float64):
        of_rows = jax.device_put(replace(model, scaling=None, units=None))  # not with every block
        program = _PROGRAMS[what]
        most = max(1, BLOCK_ELEMENTS // max(1, width))
        return blockwise(lambda z: finish(np.asarray(program(of_rows, z))), x, devices, most)


def coordinates_of(maps: ScalarMap, x: Rows, devices: Devices = ONE) -> np.ndarray:
    """Φ(x), shape (n, K), of a stack of maps, for any number of rows."""
    maps = jax.device_put(maps)  # once, not with every block
    return blockwise(lambda block: _all_maps(maps, block), x, devices)


def gram_of(maps: ScalarMap, samples: Samples) -> np.ndarray:
    """The Gram matrix of the maps over all samples, (K, K), in double precision."""
    maps = jax.device_put(maps)
    total = np.zeros((n_maps(maps), n_maps(maps)))
    for x, w in _weighted_blocks(samples, all_rows=True):
        total += _gram_sum(np.asarray(_all_maps(maps, x)), w)
    return samples.devices.total(total) / samples.weights.sum(dtype=float)


def dirichlet_matrix(maps: ScalarMap, metric: MetricField, samples: Samples) -> np.ndarray:
    """⟨φ_j, φ_k⟩_mde over the samples, shape (K, K), in double precision."""
    size = max(1, FORM_ELEMENTS // (n_maps(maps) * samples.x.shape[1]))
    total, weight = np.zeros((n_maps(maps), n_maps(maps))), 0.0
    for x, w in _weighted_blocks(samples, size):
        total += np.asarray(_weighted_forms(maps, metric, x, w), dtype=np.float64)
        weight += w.sum(dtype=float)
    return samples.devices.total(total) / samples.devices.total(weight)


def energies_of(maps: ScalarMap, metric: MetricField, samples: Samples) -> np.ndarray:
    """⟨φ_k, φ_k⟩_mde of each map of a stack over the samples, shape (K,), in one pass."""
    total, weight = np.zeros(n_maps(maps)), 0.0
    for x, w in _weighted_blocks(samples):
        total += np.asarray(_weighted_energies(maps, metric, x, w), dtype=np.float64)
        weight += w.sum(dtype=float)
    return samples.devices.total(total) / samples.devices.total(weight)


def log_scale_range(metric: MetricField, samples: Samples) -> tuple[float, float]:
    """The least and greatest log λ_i(x) over the rows: how anisotropic the metric has become."""
    ranges = [(np.inf, -np.inf)]
    for block, n in _blocks(samples.x, most_rows=ENERGY_ROWS, devices=samples.devices):
        log_scales = np.asarray(_log_scales(metric, block))[:n]
        ranges.append((log_scales.min(), log_scales.max()))
    low, high = np.array(ranges, float).T
    low, high = samples.devices.gathered([low.min(), high.max()]).T
    return float(low.min()), float(high.max())


def _weighted_blocks(
    samples: Samples, size: int = BLOCK_ROWS, *, all_rows: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of rows and of their weights, zero for padding; of very many rows, spread evenly."""
    parts, most_rows = (samples.x, samples.weights), None if all_rows else ENERGY_ROWS
    blocks = (_blocks(part, size, most_rows, samples.devices) for part in parts)
    for (x, _), (w, _) in zip(*blocks, strict=True):
        yield x, w


class Columns:
    """The cached coordinates (n, K) of fixed rows; columns not yet frozen are zero.

    Before the first map is frozen they take no memory; when they are many, they live in a file.
    """

    def __init__(
        self,
        x: Rows,
        n_components: int,
        frozen: Iterable[ScalarMap] = (),
        devices: Devices = ONE,
    ) -> None:
        self.x, self.devices = x, devices
        self.values = np.broadcast_to(np.zeros((), x.dtype), (len(x), n_components))
        self.n_frozen = 0
        for phi in frozen:
            self.append(phi)

    def append(self, phi: ScalarMap) -> None:
        """Freeze φ, or all maps of a stack, as the next columns."""
        if not self.n_frozen:
            self.values = scratch(self.values.shape, self.values.dtype)
        self.n_frozen += self._put(phi, self.values)

    def with_active(self, phi: ScalarMap) -> np.ndarray:
        """The columns with φ, or the maps of a stack, in the next places, without freezing them."""
        values = self.values.copy()
        self._put(phi, values)
        return values

    def _put(self, phi: ScalarMap, values: np.ndarray) -> int:
        """Write the values of φ, or of the maps of a stack, to the next places; how many."""
        active = _columns_of(phi, self.x, self.devices)
        values[:, self.n_frozen : self.n_frozen + active.shape[1]] = active
        return active.shape[1]

    def frozen_gram_error(self, weights: np.ndarray) -> float:
        """‖C − I‖²_F of the frozen columns over all rows, in double precision."""
        if not self.n_frozen:
            return 0.0
        c = weighted_gram(self.values[:, : self.n_frozen], weights, self.devices)
        return float(np.sum((c - np.eye(self.n_frozen)) ** 2))


def weighted_gram(phi: Rows, weights: np.ndarray, devices: Devices = ONE) -> np.ndarray:
    """Σ w φφᵀ / Σ w, shape (K, K), in double precision."""
    total = np.zeros((phi.shape[1], phi.shape[1]))
    for start in devices.share_of(range(0, len(phi), GRAM_ROWS)):
        rows = slice(start, start + GRAM_ROWS)
        total += _gram_sum(phi[rows], weights[rows])
    return devices.total(total) / weights.sum(dtype=float)


def _gram_sum(phi: np.ndarray, weights: np.ndarray) -> np.ndarray:
    block = phi.astype(np.float64)
    return (block * weights[:, None]).T @ block


def _columns_of(phi: ScalarMap, x: Rows, devices: Devices) -> np.ndarray:
    if is_single(phi):
        return blockwise(lambda block: _one_map(phi, block), x, devices)[:, None]
    return coordinates_of(phi, x, devices=devices)
