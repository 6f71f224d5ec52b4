"""Feeding the device: the host gathers chunks of batches, the device steps through them.

Row gathers inside XLA are slow on a CPU, contiguous slices are not; so the host draws the rows of
several batches at once and hands them over as one array. A chunk's shape depends on the batch
size and on d, never on n, hence neither does the compiled step. Which rows make up step s of map
k is a pure function of (seed, k, s): a run resumed anywhere draws what it would have drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from piefs.data.rows import Rows, taken
from piefs.training.config import Settings
from piefs.training.sharding import ONE, Devices

if TYPE_CHECKING:
    from piefs.core.objectives import Batch

CHUNK_BYTES = 13 * 10**6  # two chunks, in use and in preparation, share a cache of 32 MB
CHUNK_STEPS = 250
WINDOW_BLOCKS = 16
MANY_ROWS = 2**24

T = TypeVar("T")
Row = dict[str, float]  # of a history: the means of an interval of steps, by name


@dataclass(frozen=True)
class Samples:
    """Training rows on the host: inputs, targets and two kinds of weights.

    `weight` is the density of p at a row and enters the Gram matrix and the energy; `label_weight`
    counts in the readout's loss (zero for a row without label). Both default to ones. Rows of one
    of the `groups` (numbers) are left out together. `devices` are those that share each batch.
    """

    x: Rows
    target: np.ndarray | None = None
    weight: np.ndarray | None = None
    label_weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    devices: Devices = ONE

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: np.ndarray) -> Samples:
        """Some of the rows."""
        others = (self.target, self.weight, self.label_weight, self.groups)
        chosen = (None if part is None else part[rows] for part in others)
        return Samples(taken(self.x, rows), *chosen, devices=self.devices)

    @cached_property
    def targets(self) -> np.ndarray:
        """The targets, or zeros where there are none."""
        return np.broadcast_to(np.int32(0), len(self)) if self.target is None else self.target

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights under p."""
        return self._or_ones(self.weight)

    @cached_property
    def label_weights(self) -> np.ndarray:
        """The weights in the readout's loss."""
        return self._or_ones(self.label_weight)

    def _or_ones(self, weight: np.ndarray | None) -> np.ndarray:
        one = np.ones((), self.x.dtype)  # the only one in memory
        return np.broadcast_to(one, len(self)) if weight is None else np.asarray(weight, one.dtype)

    @property
    def n_effective(self) -> float:
        """How many rows of equal weight would tell as much: (Σ w)²/Σ w² (Kish)."""
        if self.weight is None:
            return float(len(self))
        weights = self.weights.astype(np.float64)
        return float(weights.sum() ** 2 / max(np.sum(weights**2), np.finfo(np.float32).tiny))


class Validation(NamedTuple):
    """Held-out rows, and what to record of the readout's outputs on them."""

    x: Rows
    score: Callable[[np.ndarray], Row]


def chunk_length(batch_size: int, n_features: int, itemsize: int, interval: int) -> int:
    """How many batches go into a chunk: few enough that two chunks cost little memory.

    Where possible it divides `interval`, so that intervals of steps end where chunks do.
    """
    fitting = CHUNK_BYTES // (batch_size * n_features * itemsize)
    most = int(np.clip(fitting, 1, min(CHUNK_STEPS, interval)))
    dividing = next(length for length in range(most, 0, -1) if interval % length == 0)
    return dividing if 2 * dividing > most else most


def row_stream(
    seed: int, k: int, n: int, start: int, size: int, window: int | None = None
) -> Iterator[np.ndarray]:
    """An endless stream of shuffled epochs, one for each k, from `start` on, `size` rows at a time.

    Every row is seen once an epoch; no row is dropped at an epoch's end.
    """
    epoch, skipped = divmod(start, n)
    pieces = (piece for i in count(epoch) for piece in _epoch(seed, k, n, i, window))
    rows = np.empty(0, int)
    while True:
        parts, missing = [rows], skipped + size - len(rows)
        while missing > 0:
            parts.append(next(pieces))
            missing -= len(parts[-1])
        rows = np.concatenate(parts) if len(parts) > 1 else rows
        yield rows[skipped : skipped + size]
        rows, skipped = rows[skipped + size :], 0


def _epoch(seed: int, k: int, n: int, epoch: int, window: int | None) -> Iterator[np.ndarray]:
    """All rows in random order.

    With a `window`, blocks of neighbouring rows are shuffled, and rows among `WINDOW_BLOCKS` of
    them only: what is read at a time lies in few places.
    """
    rng = np.random.default_rng([seed, k, epoch])
    if window is None or window >= n:
        yield rng.permutation(n)
        return
    block = max(1, window // WINDOW_BLOCKS)
    order = rng.permutation(-(-n // block))
    for i in range(0, len(order), WINDOW_BLOCKS):
        firsts = block * order[i : i + WINDOW_BLOCKS]
        rows = np.concatenate([np.arange(first, min(first + block, n)) for first in firsts])
        yield np.random.default_rng([seed, k, epoch, i]).permutation(rows)


def some_rows(seed: Any, n: int, most: int) -> np.ndarray:
    """At most so many of n rows, in random order; of very many, without a list of them all."""
    rng = np.random.default_rng(seed)
    return rng.permutation(n)[:most] if n < MANY_ROWS else rng.choice(n, most, replace=False)


def gather(samples: Samples, frozen: np.ndarray, rows: np.ndarray, shape: tuple[int, int]) -> Batch:
    """The given rows as a chunk of `shape` = (steps, batch), on the devices that share it."""
    import jax

    from piefs.core.objectives import Batch

    places = samples.devices.places(shape[1])
    is_padding = places < 0
    shape = (shape[0], len(places))
    rows = rows.reshape(shape[0], -1)[:, places].ravel()
    gathered = []
    for a in (samples.x, frozen, samples.targets, samples.weights, samples.label_weights):
        # `np.take` is the quicker way, but would first copy what is not contiguous.
        is_plain = type(a) is np.ndarray and a.flags.c_contiguous
        some = np.take(a, rows, axis=0) if is_plain else a[rows]
        gathered.append(some.reshape(*shape, *a.shape[1:]))
    if is_padding.any():
        for weight in gathered[3:]:
            weight[:, is_padding] = 0
    # Precision is a setting of the calling thread, and chunks are prepared in another one.
    with jax.enable_x64(samples.x.dtype == np.float64):
        return Batch(*(samples.devices.put(a) for a in gathered))


def chunks(
    samples: Samples,
    frozen: np.ndarray,
    *,
    seed: int,
    k: int,
    batch_size: int,
    first_step: int,
    n_steps: int,
    length: int,
    window: int | None = None,
) -> Iterator[tuple[Batch, int, int]]:
    """Chunks for the steps first_step … n_steps of map k, as (chunk, its first step, its steps).

    All have `length` batches; the surplus of the last one is there for its shape only.
    """
    start, shape = first_step * batch_size, (length, batch_size)
    stream = row_stream(seed, k, len(samples), start, length * batch_size, window)
    for step, rows in zip(range(first_step, n_steps, length), stream, strict=False):
        yield gather(samples, frozen, rows, shape), step, min(length, n_steps - step)


def feed(
    samples: Samples, frozen: np.ndarray, settings: Settings, k: int, first_step: int
) -> Iterator[tuple[Batch, int, int]]:
    """Chunks of the turn with k maps frozen from `first_step` on, prepared in a thread."""
    batch_size, total = min(settings.batch_size, len(samples)), settings.steps_per_component
    interval, window = min(settings.optimizer.log_every, total), settings.optimizer.shuffle_window
    drawn = chunks(
        samples,
        frozen,
        seed=settings.seed,
        k=k,
        batch_size=batch_size,
        first_step=first_step,
        n_steps=total,
        length=chunk_length(batch_size, samples.x.shape[1], samples.x.dtype.itemsize, interval),
        window=None if window == "auto" else window,
    )
    return prefetched(drawn)


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """The same items, each prepared in a thread while its predecessor is in use."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        upcoming = pool.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = pool.submit(next, items, None)
            yield item
