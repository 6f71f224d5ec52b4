"""A model on all rows of a table, block by block, its values kept on the host.

Blocks have one shape, so that networks are compiled once; a model without networks needs no JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from piefs.core.model import Model
from piefs.data.rows import Rows, ScaledRows, scratch
from piefs.training.sharding import ONE, Devices

BLOCK_ROWS = 8192
BLOCK_ELEMENTS = 2**24  # of a block of coordinates or outputs
GRAM_ROWS = 2**18


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
        function = of_rows.coordinates if what == "coordinates" else of_rows.outputs
        return blockwise(lambda z: finish(function(z)), x, devices, most)
    import jax

    from piefs.training.columns import PROGRAMS

    with jax.enable_x64(model.dtype == np.float64):
        of_rows, program = jax.device_put(of_rows), PROGRAMS[what]  # once, not with every block
        return blockwise(lambda z: finish(np.asarray(program(of_rows, z))), x, devices, most)


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
    size, n = _block_size(x, most), len(x)
    values = None
    for start in range(0, max(n, 1), size * devices.n_processes):
        own = start + size * devices.process
        found = devices.gathered(np.asarray(function(_block(x, own, size))))
        found = found.reshape(-1, *found.shape[2:])[: max(n - start, 0)]
        if values is None:
            values = scratch((n, *found.shape[1:]), found.dtype)
        values[start : start + len(found)] = found
    return values  # type: ignore[return-value]


def _block_size(x: Rows, most: int) -> int:
    """As many rows as a block has; small tables use the next power of two."""
    return min(BLOCK_ROWS, most, 1 << max(0, len(x) - 1).bit_length())


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
    size = _block_size(x, most)
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
