"""Rows that are read when they are needed, for tables that do not fit into memory.

All code that reads rows takes `rows[10:20]` or `rows[[3, 1, 4]]` of something with a `shape` and a
`dtype`: a numpy array, one mapped from a file, or one of the classes here. Memory is bounded by the
rows asked for and by one group of rows in a file.
"""

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from typing import Any, TypeGuard

import numpy as np

from piefs.errors import InputError

IN_MEMORY_BYTES = 256 * 2**20  # larger scratch arrays are files
PIECE_ELEMENTS = 2**16  # that are scaled at a time: in double precision they fit a core's cache
BLOCK_BYTES = 16 * 2**20  # that are copied at a time


class LazyRows:
    """The base of the classes here; it refuses to become a numpy array, which might not fit.

    `rows` are those that these are made of, if any.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2
    rows: Any
    is_far = False
    """Whether the rows are on other machines, where functions of blocks of them are computed."""

    def mapped(self, function: Callable[..., Any], size: int, *along: np.ndarray) -> Iterator[Any]:
        """function(first row, block, …) of consecutive blocks of far rows, in order.

        It is also given what of the arrays `along` belongs to the block.
        """
        raise NotImplementedError

    def summed(self, function: Callable[..., Any], size: int, *along: np.ndarray) -> Any:
        """The sum of what it gives for all blocks: of arrays, or of tuples of arrays."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        """Refuse to be read as a whole."""
        raise InputError(
            f"{type(self).__name__} of shape {self.shape} is read block by block: take rows[a:b]"
        )

    def __getitem__(self, index: Any) -> np.ndarray:
        """Rows by a slice, a mask or an array of their numbers."""
        raise NotImplementedError


Rows = np.ndarray | LazyRows
"""A matrix that gives rows by slice or by an array of row numbers."""


def is_far(rows: Any) -> TypeGuard[LazyRows]:
    """Whether functions of blocks are computed elsewhere; see `LazyRows`."""
    return getattr(rows, "is_far", False)


def added(parts: Iterable[Any]) -> Any:
    """The sum of arrays, or of tuples of arrays place by place."""
    return reduce(lambda a, b: tuple(map(np.add, a, b)) if isinstance(a, tuple) else a + b, parts)


def block_sum(
    function: Callable[..., Any],
    rows: Rows,
    size: int,
    *along: np.ndarray,
    share_of: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Any:
    """Σ function(first row, block, …) over blocks of rows, or a share of them."""
    if is_far(rows):
        return rows.summed(function, size, *along)
    starts = share_of(range(0, len(rows), size))
    parts = [slice(0, 0), *(slice(i, i + size) for i in starts)]  # a share may have no block
    return added(function(i.start, rows[i], *(a[i] for a in along)) for i in parts)


class ScaledRows(LazyRows):
    """Rows that are scaled in double precision when they are read, then rounded to `dtype`."""

    def __init__(self, rows: Rows, scaling: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
        self.rows, self.scaling = rows, scaling
        self.shape, self.dtype = (len(rows), rows.shape[1]), np.dtype(dtype)
        self.is_far = is_far(rows)

    def mapped(self, function: Callable[..., Any], size: int, *along: np.ndarray) -> Iterator[Any]:
        return self.rows.mapped(self._of_scaled(function), size, *along)

    def summed(self, function: Callable[..., Any], size: int, *along: np.ndarray) -> Any:
        return self.rows.summed(self._of_scaled(function), size, *along)

    def _of_scaled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of scaled rows as one of the rows themselves, without a hold on these."""
        scaling, dtype = self.scaling, self.dtype

        def of_rows(first: int, block: np.ndarray, *along: np.ndarray) -> Any:
            return function(first, ScaledRows(block, scaling, dtype)[:], *along)

        return of_rows

    def __getitem__(self, index: Any) -> np.ndarray:
        read = self.rows[index]
        block = np.empty((len(read), self.shape[1]), self.dtype)
        step = max(1, PIECE_ELEMENTS // max(1, self.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # an error says it instead
            for start in range(0, len(block), step):
                rows = slice(start, start + step)
                block[rows] = self.scaling(np.asarray(read[rows], np.float64))
            is_finite = np.isfinite(block.sum())
        if not is_finite:
            self._refuse_gaps(block, index)
        return block

    def _refuse_gaps(self, block: np.ndarray, index: Any) -> None:
        bad = np.argwhere(~np.isfinite(block))
        if not len(bad):
            return  # only their sum overflowed
        row, column = row_numbers(index, len(self))[bad[0][0]], bad[0][1]
        if np.isfinite(self.rows[row : row + 1][0, column]):
            raise InputError(
                f"row {row} is so far out in column {column} that {self.dtype} cannot hold it "
                '(once scaled): leave it out, or Optimizer(dtype="float64")'
            )
        raise InputError(
            f"row {row}, column {column} is not a finite number; fill or leave out such rows first"
        )


class SelectedRows(LazyRows):
    """Some rows of others that are read when needed, in the order of their numbers."""

    def __init__(self, rows: Rows, numbers: np.ndarray) -> None:
        self.rows, self.numbers = rows, np.asarray(numbers)
        self.shape, self.dtype = (len(self.numbers), rows.shape[1]), np.dtype(rows.dtype)

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self.rows[self.numbers[index]])


class PickedColumns(LazyRows):
    """Some columns, as float64, of rows that are read when needed; `fill` replaces gaps."""

    def __init__(self, rows: Rows, columns: Sequence[int], fill: np.ndarray | None = None) -> None:
        self.rows, self.columns, self.fill = rows, np.asarray(columns, np.intp), fill
        self.shape, self.dtype = (len(rows), len(self.columns)), np.dtype(np.float64)

    def __getitem__(self, index: Any) -> np.ndarray:
        block = np.asarray(self.rows[index])[:, self.columns].astype(np.float64)
        return block if self.fill is None else np.where(np.isfinite(block), block, self.fill)


class GroupedRows(LazyRows):
    """Rows in groups that are decoded as a whole by `read(i)`, such as those of a Parquet file.

    `starts` are the first rows of the groups and, last, the number of rows. The group read last is
    kept, for those who go from row to row.
    """

    def __init__(
        self, read: Callable[[int], np.ndarray], starts: Sequence[int], n_features: int, dtype: Any
    ) -> None:
        self.starts = np.asarray(starts, dtype=np.int64)
        self.shape, self.dtype = (int(self.starts[-1]), n_features), np.dtype(dtype)
        self._group = lru_cache(1)(lambda i: np.asarray(read(i), self.dtype))

    def __getitem__(self, index: Any) -> np.ndarray:
        rows = row_numbers(index, len(self))
        groups = np.searchsorted(self.starts, rows, side="right") - 1
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        for group in np.unique(groups):
            here = groups == group
            found[here] = self._group(int(group))[rows[here] - self.starts[group]]
        return found


def row_numbers(index: Any, n: int) -> np.ndarray:
    """The row numbers, among n, of a slice, a mask or an array of numbers."""
    if isinstance(index, slice):
        return np.arange(*index.indices(n))
    rows = np.asarray(index)
    if rows.dtype == bool:
        return np.flatnonzero(rows)
    return np.where(rows < 0, rows + n, rows)


def is_lazy(rows: Any) -> TypeGuard[Rows]:
    """Whether rows are read from a file when they are needed."""
    while isinstance(rows, np.ndarray):
        if isinstance(rows, np.memmap):
            return True
        rows = rows.base
    return isinstance(rows, LazyRows)


def taken(rows: Rows, numbers: np.ndarray) -> Rows:
    """Some rows, read at once unless they are lazy and many."""
    size = len(numbers) * rows.shape[1] * np.dtype(rows.dtype).itemsize
    if is_lazy(rows) and size > IN_MEMORY_BYTES:
        return SelectedRows(rows, numbers)
    return rows[numbers]


def blocks_of(rows: Rows) -> Iterator[np.ndarray]:
    """All rows, in small blocks."""
    step = max(1, BLOCK_BYTES // (rows.shape[1] * np.dtype(rows.dtype).itemsize))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def quick(rows: Rows) -> Rows:
    """The rows, copied to a scratch file if reading one means decoding or fetching many."""
    source = rows
    while hasattr(source, "rows"):
        source = source.rows  # pyright: ignore
    return rows if isinstance(source, np.ndarray) else spooled(blocks_of(rows), rows.dtype)


def scratch(shape: tuple[int, ...], dtype: Any, most_bytes: int = IN_MEMORY_BYTES) -> np.ndarray:
    """Zeros in memory, or if they are many in a nameless file that vanishes with the array."""
    if math.prod(shape) * np.dtype(dtype).itemsize <= most_bytes:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def spooled(chunks: Iterable[Any], dtype: Any = np.float32) -> np.ndarray:
    """Chunks of rows, written one after the other to a nameless file and mapped from it."""
    with tempfile.TemporaryFile() as file:
        n, width = 0, -1
        for chunk in chunks:
            block = np.ascontiguousarray(chunk, dtype=dtype)
            if block.ndim != 2 or width not in (-1, block.shape[1]):
                raise InputError(
                    f"chunk after row {n} has shape {block.shape}; all must be (rows, "
                    f"{'columns' if width < 0 else width})"
                )
            try:
                file.write(block.data)
            except OSError as error:
                raise InputError(
                    f"the scratch file in {tempfile.gettempdir()} cannot grow ({error.strerror}); "
                    "free some room, or let TMPDIR name a folder that has it"
                ) from error
            n, width = n + len(block), block.shape[1]
        if not n:
            raise InputError("there is no row in the chunks")
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n, width))
