"""Binary files, `.npy`, `.npz`, Parquet and Arrow, checked before any memory is allocated for them.

The header of a file may claim any size and any type. What it claims is compared with the bytes that
are there; pickled objects are never opened.
"""

import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate, chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from piefs.data.files import optional, reading, require_plausible
from piefs.data.rows import GroupedRows
from piefs.data.table import Block, Table, distinct, listing, require_column
from piefs.errors import InputError

MOST_COLUMNS = 1_000_000  # more names would fill the memory

# --- NumPy's files -----------------------------------------------------------------------------


def read_npz(path: Path) -> Table:
    """The arrays of an archive as columns: `x0`, `x1`, … of a matrix `x`, `y` of a vector `y`."""
    arrays = load_npz(path).items()
    columns = [pair for name, array in arrays for pair in _columns(name, array, path)]
    distinct([name for name, _ in columns], path)
    return Table(dict(columns), str(path))


def read_npy(path: Path) -> Table:
    """The columns of a matrix, named `x0`, `x1`, …"""
    return Table(dict(_columns("x", np.array(mapped_matrix(path)), path)), str(path))


def mapped_matrix(path: Path) -> np.ndarray:
    """The matrix of an `.npy` file, memory-mapped, so that what its header claims is there."""
    with reading(path):
        array = np.lib.format.open_memmap(path, mode="r")
    require_matrix(path, array.dtype, array.shape)
    return array


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file by name."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        require_plausible(path, sum(member.file_size for member in members))
        found = {}
        for member in members:
            with archive.open(member) as stream:
                found[member.filename.removesuffix(".npy")] = _array(stream, member.file_size)
    return found


def _array(stream: IO[bytes], n_bytes: int) -> np.ndarray:
    """An array whose header claims no more bytes than there are, and whose text is Unicode."""
    major, minor = np.lib.format.read_magic(stream)
    shape, _, dtype = getattr(np.lib.format, f"read_array_header_{major}_{minor}")(stream)
    if math.prod(shape) * dtype.itemsize > n_bytes:
        raise ValueError(f"a header claims more than the {n_bytes:,} bytes that are there")
    stream.seek(0)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if dtype.kind == "U" and dtype.itemsize:
        codes = np.ascontiguousarray(array).view(f"{array.dtype.str[0]}u4")
        if np.any(codes > 0x10FFFF) or np.any(codes >> 11 == 0x1B):  # half a character
            raise ValueError("text that is no Unicode")
    return array


def require_matrix(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Refuse an array that does not hold rows of numbers."""
    if len(shape) != 2 or dtype.kind not in "biuf" or not math.prod(shape):
        raise InputError(f"{path} holds {dtype}{list(shape)}; give a 2-D array of numbers")


def _columns(name: str, array: np.ndarray, path: Path) -> list[tuple[str, np.ndarray]]:
    """The columns of an array: its own name if it is one, `x0`, `x1`, … if there are several."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "biufUSM" or not array.size:
        raise InputError(
            f"{path}: array {name!r} is {array.dtype}{list(array.shape)}; "
            "give numbers or text, one row (1-D or 2-D) an example"
        )
    if array.ndim == 1 or (array.shape[1] == 1 and name.lower() != "x"):
        return [(name, array.reshape(-1))]
    return list(zip(numbered(name, array.shape[1], path), array.T, strict=True))


def numbered(name: str, n_columns: int, path: Path) -> list[str]:
    """The names of the columns of a matrix: `x0`, `x1`, …"""
    if n_columns > MOST_COLUMNS:
        raise InputError(f"{path} has {n_columns:,} columns; is it meant to be transposed?")
    return [f"{name}{j}" for j in range(n_columns)]


def write_npy(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    """Blocks of columns of numbers as one matrix."""
    first = next(blocks)
    if text := [name for name, cells in first.items() if cells.dtype.kind in "OU"]:
        raise InputError(f"{path}: .npy holds numbers only, {listing(text)} is text; use .csv")
    dtype = np.result_type(*first.values())
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": (n_rows, len(first))}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in chain([first], blocks):
            file.write(np.column_stack(list(block.values())).astype(dtype).data)


def write_npz(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    """As `np.savez` does, which has no room for columns called `file` or `allow_pickle`."""
    parts = list(blocks)
    with zipfile.ZipFile(path, "w") as archive:
        for name in parts[0]:
            cells = np.concatenate([part[name] for part in parts])
            array = cells.astype(str) if cells.dtype == object else cells
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


# --- Parquet and Arrow ---------------------------------------------------------------------------


def arrow_module(name: str, path: Path) -> Any:
    """A module of pyarrow, or an error that says how to install it."""
    return optional(name, f"{path}: {path.suffix[1:].lower() or 'Parquet'}")


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    with reading(path), arrow_module("pyarrow.parquet", path).ParquetFile(path) as file:
        yield file


def read_arrow(path: Path) -> Table:
    """A Parquet file, or an Arrow one, whose name ends in `.arrow` or `.feather`."""
    if path.suffix.lower() == ".parquet":
        parquet_footers([path])
        with _parquet(path) as file:
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


class ParquetFooter(NamedTuple):
    """What a Parquet file says about itself: its columns, and the rows and bytes of its groups."""

    path: Path
    schema: Any
    group_rows: list[int]
    n_rows: int
    n_bytes: int


def parquet_footers(files: Sequence[Path]) -> list[ParquetFooter]:
    """The footers of files, which have rows, no more than their bytes could hold."""
    footers = []
    for path in files:
        with _parquet(path) as file:
            about, schema = file.metadata, file.schema_arrow
            if not distinct(schema.names, path):
                raise InputError(f"{path} has no columns; add some")
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            n_rows = [group.num_rows for group in groups]
            if min(n_rows, default=0) < 0 or sum(n_rows) != about.num_rows:
                raise ValueError("the rows of its groups do not add up")
            n_bytes = sum(group.total_byte_size for group in groups)
            require_plausible(path, max(8 * about.num_rows * about.num_columns, n_bytes))
            footers.append(ParquetFooter(path, schema, n_rows, about.num_rows, n_bytes))
    if not sum(footer.n_rows for footer in footers):
        raise InputError(f"{listing(map(str, files), 3)} has columns but no rows; add rows")
    return footers


def parquet_batches(
    footers: Sequence[ParquetFooter], names: Sequence[str], n: int
) -> Iterator[Block]:
    """The named columns of all rows, at most n rows at a time."""
    for footer in footers:
        n_read = 0
        with _parquet(footer.path) as file:
            for batch in file.iter_batches(batch_size=n, columns=list(names)):
                n_read += len(batch)
                yield _cells(batch, names)
            if n_read != footer.n_rows:
                raise ValueError(f"{n_read} rows instead of {footer.n_rows}")


def parquet_rows(files: Sequence[Path], columns: Sequence[str] | None = None) -> GroupedRows:
    """Numeric columns of Parquet files, read by row groups."""
    footers = parquet_footers(files)
    names = list(columns) if columns is not None else footers[0].schema.names
    types = [_number_type(footer, name) for footer in footers for name in names]
    dtype = np.result_type(np.float32, *types)
    places = [(footer.path, i) for footer in footers for i in range(len(footer.group_rows))]
    starts = list(accumulate((n for one in footers for n in one.group_rows), initial=0))

    def read(i: int) -> np.ndarray:
        path, group = places[i]
        with _parquet(path) as file:
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


def write_arrow(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    """Blocks of the same columns as a Parquet or an Arrow file."""
    is_parquet = path.suffix.lower() == ".parquet"
    module, name = ("parquet", "ParquetWriter") if is_parquet else ("ipc", "new_file")
    open_writer = getattr(arrow_module(f"pyarrow.{module}", path), name)
    arrow = arrow_module("pyarrow", path)
    first = arrow.table(next(blocks))
    with open_writer(str(path), first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(arrow.table(block, schema=first.schema))
