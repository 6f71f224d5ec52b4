"""Rows and tables that stay in their files, since they may not fit into memory.

Arrays (`.npy`, Zarr) and Parquet, a file or a folder of files. A single column, such as the labels,
may be read as a whole; everything else sees some ten thousand rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.encoder import TableEncoder
from piefs.data.files import reading
from piefs.data.npy import is_zarr, mapped_matrix, numbered, open_zarr
from piefs.data.parquet import parquet_batches, parquet_files, parquet_footers, parquet_rows
from piefs.data.rows import GroupedRows, LazyRows, PickedColumns, Rows, is_lazy, spooled
from piefs.data.table import Table
from piefs.errors import InputError

STREAMED_KINDS = ".npy, .parquet, a folder of .parquet files, or .zarr"
LARGE_BYTES = 2**30  # of numbers in a file: beyond, it is streamed unless the user says otherwise
BLOCK_CELLS = 2**22  # in memory at a time


def open_rows(
    source: str | Path | Rows | Iterable[Any], columns: Sequence[Any] | None = None
) -> Rows:
    """Rows that are read when they are needed, for tables that do not fit into memory.

    Parameters
    ----------
    source
        An `.npy` file, a Parquet file or a folder of them, a Zarr array, an open array of Zarr or
        HDF5, or an iterable of chunks of rows, which is first written to a scratch file.
    columns
        Which columns, in which order: names for Parquet, numbers for all else. By default all.

    Returns
    -------
    rows
        A matrix of numbers that gives `rows[a:b]` and `rows[[i, j]]`; `fit`, `transform` and
        `predict` take it in place of an array.

    Examples
    --------
    >>> import numpy as np, piefs
    >>> rows = piefs.data.open_rows(np.ones((100, 3)) * i for i in range(5))
    >>> rows.shape
    (500, 3)
    """
    if isinstance(source, str | Path):
        if files := parquet_files(Path(source)):
            return parquet_rows(files, columns)
        rows = open_matrix(Path(source))
    elif isinstance(source, LazyRows) or (isinstance(source, np.ndarray) and is_lazy(source)):
        rows = source
    elif hasattr(source, "chunks") and hasattr(source, "shape"):
        rows = _chunked(source)
    elif isinstance(source, np.ndarray):
        raise InputError("an array is in memory already: give it to the estimator as it is")
    else:
        rows = spooled(source)
    if columns is None:
        return rows
    n = rows.shape[1]
    if unknown := [column for column in columns if column not in range(-n, n)]:
        raise InputError(f"no column {unknown[0]!r}; they are numbers, from 0 to {n - 1}")
    return PickedColumns(rows, columns)


def open_matrix(path: Path) -> Rows:
    """The rows of an `.npy` file or of a Zarr array."""
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    if path.suffix.lower() == ".npy" and path.is_file():
        return mapped_matrix(path)
    if is_zarr(path):
        return _chunked(open_zarr(path), path)
    raise InputError(f"{path} cannot be read row by row; give {STREAMED_KINDS}")


def _chunked(array: Any, path: Path | None = None) -> GroupedRows:
    """An array with a `chunks` attribute, as those of Zarr and HDF5 have, read chunk by chunk."""
    n = array.shape[0]
    size = array.chunks[0] if array.chunks else n
    # Dask lists the sizes of all chunks.
    starts = [0, *accumulate(size)] if isinstance(size, tuple) else [*range(0, n, int(size)), n]

    def read(i: int) -> np.ndarray:
        with nullcontext() if path is None else reading(path):
            return np.asarray(array[starts[i] : starts[i + 1]])

    return GroupedRows(read, starts, int(array.shape[1]), array.dtype)


# --- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """Named columns that are read block by block; `array` is the matrix behind them, if any.

    `stream(names, n)` gives the named columns of all rows, n rows at a time.
    """

    names: tuple[str, ...]
    n_rows: int
    stream: Callable[[Sequence[str], int], Iterator[dict[str, np.ndarray]]]
    source: str
    array: Rows | None = None

    def __len__(self) -> int:
        return self.n_rows

    def blocks(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """All rows, as tables that know their row numbers."""
        names = self.names if names is None else names
        start = 0
        for columns in self.stream(names, max(1, BLOCK_CELLS // len(names))):
            n = len(next(iter(columns.values())))
            yield Table(columns, self.source, np.arange(start + 1, start + n + 1))
            start += n

    def column(self, name: str) -> np.ndarray:
        """The cells of one column."""
        return np.concatenate([block.columns[name] for block in self.blocks([name])])

    def place(self, row: int) -> str:
        """The place of a row: `row 7`."""
        return f"row {row + 1}"

    def take(self, rows: np.ndarray) -> Table:
        """The given rows, which must be in ascending order."""
        if self.array is not None:
            columns = dict(zip(self.names, self.array[rows].T, strict=True))
            return Table(columns, self.source, rows + 1)
        parts, first = [], 0
        for block in self.blocks():
            a, b = np.searchsorted(rows, (first, first + len(block)))
            parts.append(block.take(rows[a:b] - first).columns)
            first += len(block)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in self.names}
        return Table(columns, self.source, rows + 1)


Source = Table | StreamedTable
"""Where a data set comes from."""


def is_to_be_streamed(path: Path, asked: bool | None) -> bool:
    """Whether a table is read block by block: as asked, or if it is large or in a folder."""
    path = Path(path)
    files = parquet_files(path)
    if not files and path.suffix.lower() != ".npy" and not is_zarr(path):
        if asked:
            raise InputError(
                f"{path} cannot be read block by block; give {STREAMED_KINDS}, or leave --lazy out"
            )
        return False
    if asked is not None or path.is_dir():
        return asked is not False
    if files:
        return parquet_footers(files)[0].n_bytes > LARGE_BYTES
    return path.is_file() and path.stat().st_size > LARGE_BYTES


def open_streamed(path: Path) -> StreamedTable:
    """A table to be read block by block."""
    path = Path(path)
    if files := parquet_files(path):
        footers = parquet_footers(files)
        names, n_rows = footers[0].schema.names, sum(footer.n_rows for footer in footers)
        if others := [one.path for one in footers if one.schema.names != names]:
            raise InputError(
                f"{others[0]} has other columns than {files[0]}; give files of one kind"
            )
        return StreamedTable(tuple(names), n_rows, partial(parquet_batches, footers), str(path))
    array = open_matrix(path)
    places = {name: j for j, name in enumerate(numbered("x", array.shape[1], path))}

    def stream(names: Sequence[str], n: int) -> Iterator[dict[str, np.ndarray]]:
        for start in range(0, len(array), n):
            block = array[start : start + n]
            yield {name: block[:, places[name]] for name in names}

    return StreamedTable(tuple(places), len(array), stream, str(path), array)


def encoded_rows(table: StreamedTable, encoder: TableEncoder) -> Rows:
    """The features of all rows: of an array in place, of other tables in a scratch file."""
    used = encoder.used
    if table.array is not None and all(one.kind in ("number", "boolean") for one in used):
        places = [table.names.index(one.name) for one in used]
        fill = np.array([one.fill for one in used]) if encoder.missing == "impute" else None
        return PickedColumns(table.array, places, fill)
    names = [column.name for column in used]
    return spooled((encoder.transform(block) for block in table.blocks(names)), np.float64)
