"""Rows that are read when they are needed: what to train on when a table does not fit into memory.

Everything that reads rows takes slices and arrays of row numbers, `rows[10:20]` and
`rows[[3, 1, 4]]`, of something with a `shape` and a `dtype`: a numpy array, one mapped from a file,
or one of the classes here. Memory is bounded by what is asked for, and by a cache of groups.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from piefs.errors import InputError

CACHE_BYTES = 256 * 2**20  # of decoded groups, for each source
IN_MEMORY_BYTES = 2**30  # larger scratch arrays are files


class Rows(Protocol):
    """A matrix that gives rows by slice or by an array of row numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> np.ndarray: ...


class LazyRows:
    """What the classes here share; a numpy array of it is refused, since it might not fit."""

    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        """Refuse to be read as a whole."""
        raise InputError(
            f"{type(self).__name__} of shape {self.shape} is read block by block: take rows[a:b]"
        )


class ScaledRows(LazyRows):
    """(x − center) / scale of rows that are read when needed, in the precision asked for."""

    def __init__(self, rows: Rows, center: np.ndarray, scale: np.ndarray, dtype: Any) -> None:
        self.rows, self.center, self.scale = rows, center, scale
        self.shape, self.dtype = (len(rows), rows.shape[1]), np.dtype(dtype)

    def __getitem__(self, index: Any) -> np.ndarray:
        block = ((self.rows[index] - self.center) / self.scale).astype(self.dtype)
        if not np.isfinite(block.sum()):
            self._refuse_gaps(block, index)
        return block

    def _refuse_gaps(self, block: np.ndarray, index: Any) -> None:
        bad = np.argwhere(~np.isfinite(block))
        if len(bad):
            row = np.arange(len(self))[index][bad[0][0]]
            raise InputError(
                f"row {row}, column {bad[0][1]} is no finite number of type {self.dtype}; fill or "
                "leave out such rows first"
            )


class GroupedRows(LazyRows):
    """Rows in groups that are read and decoded as a whole, such as those of a Parquet file.

    `starts` are the first rows of the groups and, last, the number of rows; `read(i)` gives group
    i. The groups read last are kept, up to `cache_bytes`, so rows had better be asked for in
    an order that stays within few groups for a while (`shuffle_window`).
    """

    def __init__(
        self,
        read: Callable[[int], np.ndarray],
        starts: Sequence[int],
        n_features: int,
        dtype: Any,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.read, self.starts = read, np.asarray(starts, dtype=np.int64)
        self.shape, self.dtype = (int(self.starts[-1]), n_features), np.dtype(dtype)
        self.cache_bytes = cache_bytes
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, slice):
            index = np.arange(*index.indices(len(self)))
        rows = np.asarray(index)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        groups = np.searchsorted(self.starts, rows, side="right") - 1
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        for group in np.unique(groups):
            here = groups == group
            found[here] = self._group(int(group))[rows[here] - self.starts[group]]
        return found

    def _group(self, i: int) -> np.ndarray:
        if i in self._kept:
            self._kept.move_to_end(i)
            return self._kept[i]
        group = np.asarray(self.read(i), self.dtype)
        self._kept[i] = group
        held = sum(one.nbytes for one in self._kept.values())
        while held > self.cache_bytes and len(self._kept) > 1:
            held -= self._kept.popitem(last=False)[1].nbytes
        return group


def chunked_rows(array: Any) -> GroupedRows:
    """An array with a `chunks` attribute, as those of Zarr and HDF5 are, read chunk by chunk."""
    size = int(array.chunks[0]) if array.chunks else len(array)
    starts = [*range(0, len(array), size), len(array)]

    def read(i: int) -> np.ndarray:
        return np.asarray(array[starts[i] : starts[i + 1]])

    return GroupedRows(read, starts, int(array.shape[1]), array.dtype)


def parquet_rows(files: Sequence[Path], columns: Sequence[str], dtype: Any) -> GroupedRows:
    """Numeric columns of Parquet files, read by row groups."""
    from pyarrow import parquet

    places, starts = [], [0]
    for path in files:
        metadata = parquet.read_metadata(path)
        for i in range(metadata.num_row_groups):
            places.append((path, i))
            starts.append(starts[-1] + metadata.row_group(i).num_rows)

    def read(i: int) -> np.ndarray:
        path, group = places[i]
        with parquet.ParquetFile(path) as file:
            table = file.read_row_group(group, columns=list(columns))
        return np.column_stack([table[name].to_numpy().astype(dtype) for name in columns])

    return GroupedRows(read, starts, len(columns), dtype)


def is_lazy(rows: Any) -> bool:
    """Whether rows are read from a file when they are needed."""
    while isinstance(rows, np.ndarray):
        if isinstance(rows, np.memmap):
            return True
        rows = rows.base
    return isinstance(rows, LazyRows)


def scratch(shape: tuple[int, ...], dtype: Any, most_bytes: int = IN_MEMORY_BYTES) -> np.ndarray:
    """Zeros in memory, or in a file without a name where they are many; it goes with the array."""
    if int(np.prod(shape)) * np.dtype(dtype).itemsize <= most_bytes:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def spooled(chunks: Iterable[Any], dtype: Any = np.float32) -> np.ndarray:
    """Chunks of rows, written one after the other to a file without a name, and mapped from it."""
    with tempfile.TemporaryFile() as file:
        n, width = 0, None
        for chunk in chunks:
            block = np.ascontiguousarray(chunk, dtype=dtype)
            if block.ndim != 2 or width not in (None, block.shape[1]):
                raise InputError(
                    f"chunk after row {n} has shape {block.shape}; all must be (rows, "
                    f"{'columns' if width is None else width})"
                )
            file.write(block.data)
            n, width = n + len(block), block.shape[1]
        if not n:
            raise InputError("there is no row in the chunks")
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n, width))
