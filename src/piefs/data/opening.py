"""`open_rows`: rows of a file or folder that are read when they are needed.

An `.npy` file is mapped; Parquet is read by row groups and Zarr by chunks; an iterable of chunks is
first written to a scratch file. What it gives goes wherever the estimators take X.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.array_files import mapped
from piefs.data.arrow_files import ParquetFooter, parquet_footers, pyarrow_parquet, require_rows
from piefs.data.documents import decoding
from piefs.data.rows import GroupedRows, LazyRows, PickedColumns, Rows, is_lazy, spooled
from piefs.data.table import suggestion
from piefs.data.zarr_files import ZarrMatrix, is_zarr
from piefs.errors import InputError

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
    if columns is None:
        return rows
    n = rows.shape[1]
    for column in columns:
        if not isinstance(column, int | np.integer) or not -n <= column < n:
            raise InputError(f"no column {column!r}; they are numbers, from 0 to {n - 1}")
    return PickedColumns(rows, columns)


def _open_array(path: Path) -> Rows:
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    if path.suffix.lower() == ".npy" and path.is_file():
        return mapped(path)
    if is_zarr(path):
        return chunked_rows(ZarrMatrix(path))
    raise InputError(f"{path} cannot be read row by row; give {KINDS}")


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
        return sorted(file for file in path.rglob("*.parquet") if file.is_file())
    return [path] if path.suffix.lower() == ".parquet" and path.is_file() else []


def parquet_rows(
    files: Sequence[Path], columns: Sequence[str] | None = None, dtype: Any = None
) -> GroupedRows:
    """Numeric columns of Parquet files, read by row groups."""
    footers = parquet_footers(files)
    names = list(columns) if columns is not None else footers[0].schema.names
    types = [_number_type(footer, name) for footer in footers for name in names]
    dtype = np.dtype(dtype or np.result_type(np.float32, *types))
    places = [(footer.path, i) for footer in footers for i in range(len(footer.group_rows))]
    starts = list(accumulate((n for one in footers for n in one.group_rows), initial=0))
    open_file = pyarrow_parquet(files[0]).ParquetFile

    def read(i: int) -> np.ndarray:
        path, group = places[i]
        with decoding(path), open_file(path) as file:
            found = np.empty((starts[i + 1] - starts[i], len(names)), dtype)
            for j, name in enumerate(names):  # one by one: all at once would take twice the memory
                cells = file.read_row_group(group, columns=[name])[name].to_numpy()
                require_rows(len(found), len(cells))  # one cell alone would fill the column
                found[:, j] = cells
        return found

    return GroupedRows(read, starts, len(names), dtype)


def _number_type(footer: ParquetFooter, name: str) -> Any:
    """The numpy type of a column that has to be there and to hold numbers."""
    path, schema = footer.path, footer.schema
    if name not in schema.names:
        raise InputError(f"{path} has no column {name!r}{suggestion(str(name), schema.names)}")
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
