"""Feeding the device: the host gathers chunks of batches, the device steps through them.

Row gathers inside XLA are slow on a CPU, contiguous slices are not; so the host draws the rows of
several batches at once and hands them over as one array. A chunk's shape depends on the batch
size and on d, never on n, hence neither does the compiled step. Which rows make up step s of map
k is a pure function of (seed, k, s): a run resumed anywhere draws what it would have drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jax import Array

CHUNK_BYTES = 13 * 10**6  # two chunks, in use and in preparation, share a cache of 32 MB
CHUNK_STEPS = 250


@dataclass(frozen=True)
class Samples:
    """Training rows on the host: inputs, targets and two kinds of weights.

    `weight` is the density of p at a row and enters the Gram matrix and the energy; `label_weight`
    counts in the readout's loss (zero for a row without label). Both default to ones.
    """

    x: np.ndarray
    target: np.ndarray | None = None
    weight: np.ndarray | None = None
    label_weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: np.ndarray) -> Samples:
        """Some of the rows."""
        others = (self.target, self.weight, self.label_weight)
        return Samples(self.x[rows], *(None if part is None else part[rows] for part in others))

    @cached_property
    def targets(self) -> np.ndarray:
        """The targets, or zeros where there are none."""
        return np.zeros(len(self), np.int32) if self.target is None else self.target

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights under p."""
        return self._or_ones(self.weight)

    @cached_property
    def label_weights(self) -> np.ndarray:
        """The weights in the readout's loss."""
        return self._or_ones(self.label_weight)

    def _or_ones(self, weight: np.ndarray | None) -> np.ndarray:
        dtype = self.x.dtype
        return np.ones(len(self), dtype) if weight is None else np.asarray(weight, dtype)


class Batch(NamedTuple):
    """One mini-batch, or a chunk of them with a leading axis of steps.

    x: (B, d); frozen: (B, K), the cached columns φ_j(x) for j < k and zeros beyond; target,
    weight, label_weight: (B,).
    """

    x: Array
    frozen: Array
    target: Array
    weight: Array
    label_weight: Array


def chunk_length(batch_size: int, n_features: int, itemsize: int, interval: int) -> int:
    """How many batches go into a chunk: few enough that two chunks cost little memory.

    Where possible it divides `interval`, so that intervals of steps end where chunks do.
    """
    fitting = CHUNK_BYTES // (batch_size * n_features * itemsize)
    most = int(np.clip(fitting, 1, min(CHUNK_STEPS, interval)))
    divisors = [length for length in range(most, 0, -1) if interval % length == 0]
    return divisors[0] if 2 * divisors[0] > most else most


def row_stream(seed: int, k: int, n: int, start: int, size: int) -> np.ndarray:
    """Positions start … start+size of an endless stream of shuffled epochs, one stream for each k.

    Every row is seen once an epoch; no row is dropped at an epoch's end.
    """
    epochs = range(start // n, (start + size - 1) // n + 1)
    rows = np.concatenate([_epoch(seed, k, n, e) for e in epochs])
    first = start - epochs[0] * n
    return rows[first : first + size]


def _epoch(seed: int, k: int, n: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, k, epoch]).permutation(n)


def gather(samples: Samples, frozen: np.ndarray, rows: np.ndarray, shape: tuple[int, int]) -> Batch:
    """The given rows as a chunk of `shape` = (steps, batch), on the device."""
    arrays = (samples.x, frozen, samples.targets, samples.weights, samples.label_weights)
    taken = (np.take(a, rows, axis=0).reshape(*shape, *a.shape[1:]) for a in arrays)
    # Precision is a setting of the calling thread, and chunks are prepared in another one.
    with jax.enable_x64(samples.x.dtype == np.float64):
        return Batch(*(jax.device_put(a) for a in taken))


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
) -> Iterator[tuple[Batch, int, int]]:
    """Chunks for the steps first_step … n_steps of map k, as (chunk, its first step, its steps).

    All chunks have `length` batches; the surplus of the last one is there for its shape only.
    """
    for step in range(first_step, n_steps, length):
        start, size = step * batch_size, length * batch_size
        rows = row_stream(seed, k, len(samples), start, size)
        yield (
            gather(samples, frozen, rows, (length, batch_size)),
            step,
            min(length, n_steps - step),
        )


T = TypeVar("T")


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """The same items, each prepared in a thread while its predecessor is in use."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        upcoming = pool.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = pool.submit(next, items, None)
            yield item
