"""Rows and tables that stay in their files, since they may not fit into memory.

Arrays (`.npy`, Zarr) and Parquet, a file or a folder of files. A single column, such as the labels,
may be read as a whole; everything else sees some ten thousand rows at a time.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.binary import (
    mapped_matrix,
    numbered,
    parquet_batches,
    parquet_footers,
    parquet_rows,
    require_matrix,
)
from piefs.data.encoder import TableEncoder
from piefs.data.files import bounded_bytes, optional, reading, require_plausible
from piefs.data.rows import GroupedRows, LazyRows, PickedColumns, Rows, is_lazy, spooled
from piefs.data.table import Table, listing
from piefs.errors import InputError

STREAMED_KINDS = ".npy, .parquet, a folder of .parquet files, or .zarr"
LARGE_BYTES = 2**30  # of numbers in a file: beyond, it is streamed unless the user says otherwise
BLOCK_CELLS = 2**22  # in memory at a time
ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
MOST_METADATA_BYTES = 2**24
COMPRESSORS = ("blosc", "lz4", "zstd", "gzip", "zlib")
CODECS = (*COMPRESSORS, "bytes", "transpose", "shuffle", "crc32c", "sharding_indexed")


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

    `fit`, `transform` and `predict` take the matrix in place of an array.

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
    elif isinstance(source, LazyRows) or is_lazy(source):
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


def parquet_files(path: Path) -> list[Path]:
    """A Parquet file, or those in a folder and its subfolders, by name; none for other paths."""
    if path.is_dir() and not is_zarr(path):
        return sorted(file for file in path.rglob("*.parquet") if file.is_file())
    return [path] if path.suffix.lower() == ".parquet" and path.is_file() else []


def is_zarr(path: Path) -> bool:
    """Whether a folder is an array or a group of Zarr, or its name says so."""
    return path.suffix.lower() == ".zarr" or any((path / mark).is_file() for mark in ZARR_MARKS)


def open_zarr(path: Path) -> Any:
    """A matrix of Zarr; its metadata are checked, and nothing is unpacked yet.

    Metadata name the codecs, and some of those run code, so only plain compressors are allowed.
    Neither the array nor one chunk of it may be far larger than the bytes in the folder.
    """
    zarr = optional("zarr", f"{path}: a Zarr array", "zarr")
    with reading(path):
        for name in (*ZARR_MARKS, ".zattrs", ".zmetadata"):
            if (path / name).exists():
                bounded_bytes(path / name, MOST_METADATA_BYTES)
        found = zarr.open(str(path), mode="r")
        if not hasattr(found, "shape"):
            names = listing(str(path / name) for name in found.array_keys()) or "none"
            raise InputError(f"{path} is a group of arrays; give one of them: {names}")
        dtype = np.dtype(found.dtype)
        require_matrix(path, dtype, found.shape)
        if 0 in found.chunks:
            raise ValueError("its chunks are empty")
        if unknown := [name for name in _codecs(found.metadata.to_dict()) if name not in CODECS]:
            raise InputError(
                f"{path} is packed by {listing(unknown)}, which is not unpacked here; write it "
                f"again, compressed by {listing(COMPRESSORS)} or not at all"
            )
        for shape in (found.shape, found.chunks, found.shards or ()):
            require_plausible(path, math.prod(shape) * dtype.itemsize)
    return found


def _codecs(about: dict[str, Any]) -> list[str]:
    """The names of all codecs of an array, those within shards included."""
    codecs = about.get("codecs") or (*(about.get("filters") or ()), about.get("compressor"))
    names = []
    for codec in filter(None, codecs):
        names.append(str(codec.get("name", codec.get("id"))).removeprefix("numcodecs."))
        inner = codec.get("configuration") or {}
        if "index_codecs" in inner:
            names += _codecs(inner) + _codecs({"codecs": inner["index_codecs"]})
    return names


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
        wanted = np.zeros(len(self), bool)
        wanted[rows] = True
        blocks = (block.take(wanted[block.lines - 1]) for block in self.blocks())
        parts = [block.columns for block in blocks]
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
