"""What training needs of many rows: cached columns φ_j(x), Gram matrices, energies, by network."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.maps import ScalarMap, is_single, n_maps, stack
from piefs.core.metric import MetricField
from piefs.data.rows import Rows, scratch
from piefs.training.batches import Samples
from piefs.training.evaluation import blocks, blockwise, weighted_gram
from piefs.training.sharding import ONE, Devices

ENERGY_ROWS = 2**18  # that energies are taken over: beyond, their error is some thousandths
FORM_ELEMENTS = 2**23  # of the gradients of all maps that are in memory at a time


_all_maps = jax.jit(lambda maps, x: maps.coordinates(x))
_log_scales = jax.jit(lambda metric, x: metric.log_scales(x))
PROGRAMS = {
    "coordinates": jax.jit(lambda model, z: model.of_scaled(z)),
    "outputs": jax.jit(lambda model, z: model.readout(model.of_scaled(z))),
}
"""What a model of networks gives for a block of scaled rows."""


@jax.jit
def _weighted_forms(maps: ScalarMap, metric: MetricField, x: Array, weight: Array) -> Array:
    """Σ w_i (A∇φ_j)·(A∇φ_k)(x_i), shape (K, K)."""

    def transformed(phi: ScalarMap) -> Array:
        _, gradient = phi.value_and_gradient(x)
        return jnp.sqrt(weight)[:, None] * metric.apply(x, gradient).dense()

    vectors = jax.vmap(transformed)(maps)
    flat = vectors.reshape(vectors.shape[0], -1)
    return flat @ flat.T


def coordinates_of(maps: ScalarMap, x: Rows, devices: Devices = ONE) -> np.ndarray:
    """Φ(x), shape (n, K), of a stack of maps, for any number of rows."""
    maps = jax.device_put(maps)  # once, not with every block
    return blockwise(lambda block: _all_maps(maps, block), x, devices)


def dirichlet_matrix(maps: ScalarMap, metric: MetricField, samples: Samples) -> np.ndarray:
    """⟨φ_j, φ_k⟩_mde over the samples, shape (K, K), in double precision.

    Of very many rows, over blocks spread evenly.
    """
    n, devices = n_maps(maps), samples.devices
    size = max(1, FORM_ELEMENTS // (n * samples.x.shape[1]))
    total, weight = np.zeros((n, n)), 0.0
    parts = (blocks(part, size, ENERGY_ROWS, devices) for part in (samples.x, samples.weights))
    for (x, _), (w, _) in zip(*parts, strict=True):  # padding has no weight
        total += np.asarray(_weighted_forms(maps, metric, x, w), np.float64)
        weight += w.sum(dtype=float)
    return devices.total(total) / devices.total(weight)


def energies_of(maps: ScalarMap, metric: MetricField, samples: Samples) -> np.ndarray:
    """⟨φ_k, φ_k⟩_mde of each map of a stack over the samples, shape (K,)."""
    return np.diag(dirichlet_matrix(maps, metric, samples))


def log_scale_range(metric: MetricField, samples: Samples) -> tuple[float, float]:
    """The least and greatest log λ_i(x) over the rows: how anisotropic the metric has become."""
    low, high = np.inf, -np.inf
    for block, n in blocks(samples.x, most_rows=ENERGY_ROWS, devices=samples.devices):
        log_scales = np.asarray(_log_scales(metric, block), float)[:n]
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
        active = coordinates_of(stack([phi]) if is_single(phi) else phi, self.x, self.devices)
        values[:, self.n_frozen : self.n_frozen + active.shape[1]] = active
        return active.shape[1]

    def frozen_gram_error(self, weights: np.ndarray) -> float:
        """‖C − I‖²_F of the frozen columns over all rows, in double precision."""
        if not self.n_frozen:
            return 0.0
        c = weighted_gram(self.values[:, : self.n_frozen], weights, self.devices)
        return float(np.sum((c - np.eye(self.n_frozen)) ** 2))
