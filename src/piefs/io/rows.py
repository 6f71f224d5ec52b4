"""`open_rows`: rows of a file or folder that are read when they are needed.

An `.npy` file is mapped; Parquet is read by row groups and Zarr by chunks; an iterable of chunks is
first written to a scratch file. What it gives goes wherever the estimators take X.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from piefs.errors import InputError
from piefs.io.tables import listing, suggestion
from piefs.sources import GroupedRows, LazyRows, PickedColumns, Rows, is_lazy, spooled

ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
KINDS = ".npy, .parquet, a folder of .parquet files, or .zarr"


def open_rows(
    source: str | Path | Rows | Iterable[Any], columns: Sequence[Any] | None = None
) -> Rows:
    """Rows that are read when they are needed, for tables that do not fit into memory.

    Parameters
    ----------
    source
        An `.npy` file, a Parquet file or a folder of them, a Zarr array, an array of Zarr or HDF5
        that is open, or an iterable of chunks of rows.
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
    >>> rows = piefs.open_rows(np.ones((100, 3)) * i for i in range(5))
    >>> rows.shape
    (500, 3)
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if parquet_files(path):
            return parquet_rows(parquet_files(path), columns)
        return _picked(_open_array(path), columns)
    if isinstance(source, LazyRows) or (isinstance(source, np.ndarray) and is_lazy(source)):
        return _picked(source, columns)
    if hasattr(source, "chunks") and hasattr(source, "shape"):
        return _picked(chunked_rows(source), columns)
    if isinstance(source, np.ndarray):
        raise InputError("an array is in memory already: give it to the estimator as it is")
    return _picked(spooled(source), columns)


def _picked(rows: Rows, columns: Sequence[Any] | None) -> Rows:
    return rows if columns is None else PickedColumns(rows, columns)


def _open_array(path: Path) -> Rows:
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    if path.suffix.lower() == ".npy" and path.is_file():
        return mapped(path)
    if is_zarr(path):
        return chunked_rows(open_zarr(path))
    raise InputError(f"{path} cannot be read row by row; give {KINDS}")


def mapped(path: Path) -> np.ndarray:
    """The matrix of an `.npy` file, mapped."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} is not a readable .npy file ({error})") from error
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise InputError(
            f"{path} holds {array.dtype}{list(array.shape)}; rows are a 2-D array of numbers"
        )
    return array


def is_zarr(path: Path) -> bool:
    """Whether a folder is an array or a group of Zarr, or a name says so."""
    return path.suffix.lower() == ".zarr" or any((path / mark).is_file() for mark in ZARR_MARKS)


def open_zarr(path: Path) -> Any:
    """A matrix of Zarr."""
    try:
        zarr = import_module("zarr")
    except ImportError as error:
        raise InputError(f"{path}: Zarr arrays need zarr; pip install piefs[zarr]") from error
    try:
        found = zarr.open(str(path), mode="r")
    except Exception as error:  # of many kinds; all mean the same
        raise InputError(f"{path} is not a readable Zarr array ({error})") from error
    if not hasattr(found, "shape"):
        names = listing(str(path / name) for name in found.array_keys()) or "none"
        raise InputError(f"{path} is a group of arrays; give one of them: {names}")
    if len(found.shape) != 2 or np.dtype(found.dtype).kind not in "biuf" or not found.size:
        raise InputError(
            f"{path} holds {found.dtype}{list(found.shape)}; rows are a 2-D array of numbers"
        )
    return found


def chunked_rows(array: Any) -> GroupedRows:
    """An array with a `chunks` attribute, as those of Zarr and HDF5 are, read chunk by chunk."""
    n, sizes = array.shape[0], array.chunks[0] if array.chunks else array.shape[0]
    if isinstance(sizes, tuple):  # Dask names the sizes of all
        starts = [0, *np.cumsum(sizes).tolist()]
    else:
        starts = [*range(0, n, int(sizes)), n]

    def read(i: int) -> np.ndarray:
        return np.asarray(array[starts[i] : starts[i + 1]])

    return GroupedRows(read, starts, int(array.shape[1]), array.dtype)


def parquet_files(path: Path) -> list[Path]:
    """A Parquet file, or those in a folder and the folders in it, by name; none for others."""
    if path.is_dir() and not is_zarr(path):
        return sorted(path.rglob("*.parquet"))
    return [path] if path.suffix.lower() == ".parquet" and path.is_file() else []


def parquet_rows(
    files: Sequence[Path], columns: Sequence[str] | None = None, dtype: Any = None
) -> GroupedRows:
    """Numeric columns of Parquet files, read by row groups."""
    parquet = pyarrow_parquet(files[0])
    schemas = [parquet.read_schema(path) for path in files]
    names = list(columns) if columns is not None else schemas[0].names
    types = [
        _number_type(schema, name, path)
        for schema, path in zip(schemas, files, strict=True)
        for name in names
    ]
    dtype = np.dtype(dtype or np.result_type(np.float32, *types))
    places, starts = [], [0]
    for path in files:
        metadata = parquet.read_metadata(path)
        for i in range(metadata.num_row_groups):
            places.append((path, i))
            starts.append(starts[-1] + metadata.row_group(i).num_rows)

    def read(i: int) -> np.ndarray:
        path, group = places[i]
        found = np.empty((starts[i + 1] - starts[i], len(names)), dtype)
        with parquet.ParquetFile(path) as file:
            for j, name in enumerate(names):  # one by one: all at once would take twice the memory
                found[:, j] = file.read_row_group(group, columns=[name])[name].to_numpy()
        return found

    return GroupedRows(read, starts, len(names), dtype)


def pyarrow_parquet(path: Path) -> Any:
    """The module that reads Parquet."""
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(
            f"{path}: parquet files need pyarrow; pip install piefs[parquet]"
        ) from error


def _number_type(schema: Any, name: str, path: Path) -> Any:
    """The numpy type of a column that has to be there and to hold numbers."""
    if name not in schema.names:
        raise InputError(f"{path} has no column {name!r}{suggestion(name, schema.names)}")
    try:
        kind = np.dtype(schema.field(name).type.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        kind = np.dtype(object)
    if kind.kind not in "biuf":
        raise InputError(
            f"{path}: column {name!r} holds {schema.field(name).type}, and rows are numbers; name "
            "the others in columns=[…], or encode it first (`piefs fit` does)"
        )
    return kind
