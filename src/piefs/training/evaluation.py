"""A model on all rows of a table, block by block, its values kept on the host.

Blocks have one shape, so that networks are compiled once; a model without networks needs no JAX.
Of networks in training: cached columns φ_j(x), energies, scales of the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from piefs.core.model import Model
from piefs.data.rows import Rows, ScaledRows, is_far, scratch
from piefs.training.sharding import ONE, Devices

if TYPE_CHECKING:
    from jax import Array

    from piefs.core.maps import ScalarMap
    from piefs.core.metric import MetricField
    from piefs.training.batches import Samples

BLOCK_ROWS = 8192
BLOCK_ELEMENTS = 2**24  # of a block of coordinates or outputs
GRAM_ROWS = 2**18
ENERGY_ROWS = 2**18  # that energies are taken over: beyond, their error is some thousandths
FORM_ELEMENTS = 2**23  # of the gradients of all maps that are in memory at a time


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
        x = ScaledRows(x, model.scaling, model.dtype)
    of_rows = replace(model, scaling=None, units=None)
    most = max(1, BLOCK_ELEMENTS // max(1, len(of_rows.readout.bias), len(of_rows.mixing)))
    if not needs_jax(model):
        return blockwise(lambda z: finish(getattr(of_rows, what)(z)), x, devices, most)
    import jax

    with jax.enable_x64(model.dtype == np.float64):
        of_rows, values = jax.device_put(of_rows), compiled(what)  # once, not with every block
        return blockwise(lambda z: finish(np.asarray(values(of_rows, z))), x, devices, most)


def needs_jax(model: Model) -> bool:
    """Whether the maps are networks; those in NumPy have `needs_jax = False`."""
    return getattr(model.maps, "needs_jax", True)


def blockwise(
    function: Callable[[np.ndarray], Any],
    x: Rows,
    devices: Devices = ONE,
    most: int = BLOCK_ROWS,
) -> np.ndarray:
    """`function`, rows to rows, over all rows of x in blocks of at most `most`, padded to one size.

    Of several processes each takes one block at a time, and then tells the others its values.
    """
    n = len(x)
    if is_far(x):
        return np.concatenate(list(x.mapped(partial(_of_block, function), min(BLOCK_ROWS, most))))
    size = min(BLOCK_ROWS, most, 1 << max(0, n - 1).bit_length())  # little for small tables
    values = None
    for start in range(0, max(n, 1), size * devices.n_processes):
        own = start + size * devices.process
        found = devices.gathered(np.asarray(function(_block(x, own, size))))
        found = found.reshape(-1, *found.shape[2:])[: max(n - start, 0)]
        if values is None:
            values = scratch((n, *found.shape[1:]), found.dtype)
        values[start : start + len(found)] = found
    return values  # type: ignore[return-value]


def _of_block(function: Callable[[np.ndarray], Any], _: int, block: np.ndarray) -> np.ndarray:
    return np.asarray(function(block))


def _block(x: Rows, start: int, size: int) -> np.ndarray:
    """So many rows, zeros where there are no more."""
    block = x[start : start + size]
    padding = np.zeros((size - len(block), *x.shape[1:]), x.dtype)
    return np.concatenate([block, padding]) if len(padding) else block


def blocks(
    x: Rows, most: int = BLOCK_ROWS, most_rows: int | None = None, devices: Devices = ONE
) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks of x with their true number of rows; of several processes, each has its share.

    Where there are more than `most_rows`, blocks of about so many in all, spread evenly.
    """
    size = min(BLOCK_ROWS, most, 1 << max(0, len(x) - 1).bit_length())
    step = size if most_rows is None else size * -(-len(x) // max(most_rows, size))
    for start in devices.share_of(range(0, len(x), step)):
        yield _block(x, start, size), min(size, len(x) - start)


def weighted_gram(phi: Rows, weights: np.ndarray, devices: Devices = ONE) -> np.ndarray:
    """Σ w φφᵀ / Σ w, shape (K, K), in double precision."""
    total = np.zeros((phi.shape[1], phi.shape[1]))
    for start in devices.share_of(range(0, len(phi), GRAM_ROWS)):
        block = phi[start : start + GRAM_ROWS].astype(np.float64)
        total += (block * weights[start : start + GRAM_ROWS, None]).T @ block
    return devices.total(total) / weights.sum(dtype=float)


# --- networks in training ----------------------------------------------------------------------


@cache
def compiled(method: str) -> Callable:
    """A method of maps, a metric or a model as a program of (object, rows)."""
    import jax

    return jax.jit(lambda tree, x: getattr(tree, method)(x))


@cache
def _weighted_forms() -> Callable:
    """Σ w_i (A∇φ_j)·(A∇φ_k)(x_i), shape (K, K), of (maps, metric, x, w)."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def forms(maps: ScalarMap, metric: MetricField, x: Array, weight: Array) -> Array:
        def transformed(phi: ScalarMap) -> Array:
            _, gradient = phi.value_and_gradient(x)
            return jnp.sqrt(weight)[:, None] * metric.apply(x, gradient).dense()

        vectors = jax.vmap(transformed)(maps)
        flat = vectors.reshape(vectors.shape[0], -1)
        return flat @ flat.T

    return forms


def coordinates_of(maps: ScalarMap, x: Rows, devices: Devices = ONE) -> np.ndarray:
    """Φ(x), shape (n, K), of one map or a stack of maps, for any number of rows."""
    import jax

    from piefs.core.maps import is_single, stack

    maps, values = stack([maps]) if is_single(maps) else maps, compiled("coordinates")
    maps = jax.device_put(maps)
    return blockwise(lambda block: values(maps, block), x, devices)


def dirichlet_matrix(maps: ScalarMap, metric: MetricField, samples: Samples) -> np.ndarray:
    """⟨φ_j, φ_k⟩_mde over the samples, shape (K, K), in double precision.

    Of very many rows, over blocks spread evenly.
    """
    from piefs.core.maps import n_maps

    n, devices = n_maps(maps), samples.devices
    size = max(1, FORM_ELEMENTS // (n * samples.x.shape[1]))
    total, weight = np.zeros((n, n)), 0.0
    parts = (blocks(part, size, ENERGY_ROWS, devices) for part in (samples.x, samples.weights))
    for (x, _), (w, _) in zip(*parts, strict=True):  # padding has no weight
        total += np.asarray(_weighted_forms()(maps, metric, x, w), np.float64)
        weight += w.sum(dtype=float)
    return devices.total(total) / devices.total(weight)


def energies_of(maps: ScalarMap, metric: MetricField, samples: Samples) -> np.ndarray:
    """⟨φ_k, φ_k⟩_mde of each map of a stack over the samples, shape (K,)."""
    return np.diag(dirichlet_matrix(maps, metric, samples))


def log_scale_range(metric: MetricField, samples: Samples) -> tuple[float, float]:
    """The least and greatest log λ_i(x) over the rows: how anisotropic the metric has become."""
    low, high = np.inf, -np.inf
    for block, n in blocks(samples.x, most_rows=ENERGY_ROWS, devices=samples.devices):
        log_scales = np.asarray(compiled("log_scales")(metric, block), float)[:n]
        low, high = min(low, log_scales.min()), max(high, log_scales.max())
    low, high = samples.devices.gathered([low, high]).T
    return float(low.min()), float(high.max())


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
        active = coordinates_of(phi, self.x, self.devices)
        values[:, self.n_frozen : self.n_frozen + active.shape[1]] = active
        return active.shape[1]

    def frozen_gram_error(self, weights: np.ndarray) -> float:
        """‖C − I‖²_F of the frozen columns over all rows, in double precision."""
        c = weighted_gram(self.values[:, : self.n_frozen], weights, self.devices)
        return float(np.sum((c - np.eye(self.n_frozen)) ** 2))
