"""Parquet and Arrow files, by pyarrow: whole, by row groups, or in batches, both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from piefs.data.files import optional, reading, require_plausible
from piefs.data.npy import is_zarr
from piefs.data.rows import GroupedRows
from piefs.data.table import Block, Table, distinct, listing, require_column
from piefs.errors import InputError


def arrow_module(name: str, path: Path) -> Any:
    """A module of pyarrow, or an error that says how to install it."""
    return optional(name, f"{path}: {path.suffix[1:].lower() or 'Parquet'}")


def read_arrow(path: Path) -> Table:
    """A Parquet file, or an Arrow one, whose name ends in `.arrow` or `.feather`."""
    if path.suffix.lower() == ".parquet":
        with arrow_module("pyarrow.parquet", path).ParquetFile(path) as file:
            _decoded_bytes(path, file.metadata)
            content = file.read()
    else:
        content = arrow_module("pyarrow.feather", path).read_table(path, memory_map=False)
    names = distinct(content.column_names, path)
    return Table(_cells(content, names), str(path))


def _cells(content: Any, names: Sequence[str]) -> Block:
    """The named columns of an Arrow table or batch: numbers and whole booleans, else objects."""
    from pyarrow import types

    content.validate(full=True)  # offsets that point elsewhere would be followed
    cells = {}
    for name in names:
        column = content[name]
        whole_booleans = types.is_boolean(column.type) and not column.null_count
        if whole_booleans or types.is_floating(column.type) or types.is_integer(column.type):
            cells[name] = column.to_numpy(zero_copy_only=False)
        else:
            cells[name] = np.fromiter(column.to_pylist(), dtype=object, count=len(column))
    return cells


# --- files that are not read as a whole --------------------------------------------------------


class ParquetFooter(NamedTuple):
    """What a Parquet file says about itself: its columns, and the rows and bytes of its groups."""

    path: Path
    schema: Any
    group_rows: list[int]
    n_rows: int
    n_bytes: int


def parquet_files(path: Path) -> list[Path]:
    """A Parquet file, or those in a folder and its subfolders, by name; none for other paths."""
    if path.is_dir() and not is_zarr(path):
        return sorted(file for file in path.rglob("*.parquet") if file.is_file())
    return [path] if path.suffix.lower() == ".parquet" and path.is_file() else []


def parquet_footers(files: Sequence[Path]) -> list[ParquetFooter]:
    """The footers of files, which have rows."""
    footers = []
    for path in files:
        with reading(path), arrow_module("pyarrow.parquet", path).ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
            if not distinct(schema.names, path):
                raise InputError(f"{path} has no columns; add some")
            n_rows = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
            if min(n_rows, default=0) < 0 or sum(n_rows) != about.num_rows:
                raise ValueError("the rows of its groups do not add up")
            n_bytes = _decoded_bytes(path, about)
            footers.append(ParquetFooter(path, schema, n_rows, about.num_rows, n_bytes))
    if not sum(footer.n_rows for footer in footers):
        raise InputError(f"{listing(map(str, files), 3)} has columns but no rows; add rows")
    return footers


def _decoded_bytes(path: Path, about: Any) -> int:
    """The size of a Parquet file's decoded cells, if its bytes could hold them."""
    n_bytes = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    require_plausible(path, max(8 * about.num_rows * about.num_columns, n_bytes))
    return n_bytes


def parquet_batches(
    footers: Sequence[ParquetFooter], names: Sequence[str], n: int
) -> Iterator[Block]:
    """The named columns of all rows, at most n rows at a time."""
    for footer in footers:
        path, n_read = footer.path, 0
        with reading(path), arrow_module("pyarrow.parquet", path).ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=n, columns=list(names)):
                n_read += len(batch)
                yield _cells(batch, names)
            if n_read != footer.n_rows:
                raise ValueError(f"{n_read} rows instead of {footer.n_rows}")


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
    open_file = arrow_module("pyarrow.parquet", files[0]).ParquetFile

    def read(i: int) -> np.ndarray:
        path, group = places[i]
        with reading(path), open_file(path) as file:
            found = np.empty((starts[i + 1] - starts[i], len(names)), dtype)
            for j, name in enumerate(names):  # one by one: all at once would take twice the memory
                cells = file.read_row_group(group, columns=[name])[name].to_numpy()
                found[:, j] = cells.reshape(len(found))  # a single cell must not fill the column
        return found

    return GroupedRows(read, starts, len(names), dtype)


def _number_type(footer: ParquetFooter, name: str) -> np.dtype:
    """The numpy type of a column of numbers."""
    require_column(name, tuple(footer.schema.names), str(footer.path))
    found = footer.schema.field(name).type
    with suppress(NotImplementedError, TypeError):  # no type of numpy's
        if (kind := np.dtype(found.to_pandas_dtype())).kind in "biuf":
            return kind
    raise InputError(
        f"{footer.path}: column {name!r} holds {found}, and rows are numbers; name the others in "
        "columns=[…], or encode it first (`piefs fit` does)"
    )


# --- writing -----------------------------------------------------------------------------------


def write_arrow(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    """Blocks of the same columns as a Parquet or an Arrow file."""
    is_parquet = path.suffix.lower() == ".parquet"
    module, name = ("parquet", "ParquetWriter") if is_parquet else ("ipc", "new_file")
    open_writer = getattr(arrow_module(f"pyarrow.{module}", path), name)
    arrow = arrow_module("pyarrow", path)
    table = arrow.table(next(blocks))
    with open_writer(str(path), table.schema) as writer:
        writer.write_table(table)
        for block in blocks:
            writer.write_table(arrow.table(block, schema=table.schema))
