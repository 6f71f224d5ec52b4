"""Tables and rows from files, by suffix; text tables are CSV in UTF-8, read by pyarrow.

Cells of text stay text here; `piefs.data.encoder` decides what they mean. Whatever is wrong with a
file becomes one line that names the file and says what to do.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.files import decoding, require_few_columns
from piefs.data.npy import is_zarr, mapped, open_zarr, read_npy, read_npz
from piefs.data.parquet import arrow_module, parquet_files, parquet_rows, read_arrow
from piefs.data.rows import GroupedRows, LazyRows, PickedColumns, Rows, is_lazy, spooled
from piefs.data.table import Table, distinct, listing
from piefs.errors import InputError

STREAMED_KINDS = ".npy, .parquet, a folder of .parquet files, or .zarr"
DELIMITERS = ",;\t"
DECIMAL_COMMA = r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$"
_QUOTED_CELL = re.compile(rb'(?:^|(?<=[,;\t\r\n]))"(?:[^"]|"")*"(?=[,;\t\r\n]|$)')
MOST_BLOCK_BYTES = 2**30


def read_table(path: Path) -> Table:
    """The table in a file, read according to its suffix."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give a file ({listing(_READERS)})")
        if not path.is_file():
            raise InputError(f"{path} does not exist; check the name and the folder")
        if path.suffix.lower() not in _READERS:
            kinds = listing(_READERS)
            raise InputError(f"{path}: unknown kind of file {path.suffix!r}; give one of {kinds}")
        if not path.stat().st_size:
            raise InputError(f"{path} is empty; give a file with a table")
        table = _READERS[path.suffix.lower()](path)
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory; give fewer rows or columns") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
    if not len(table):
        raise InputError(f"{path} has columns but no rows; add rows")
    return table


# --- text --------------------------------------------------------------------------------------


def read_csv(path: Path) -> Table:
    """A table of text with a header; comma, semicolon or tab separate the cells.

    pyarrow reads it if each line is a record. Python's own reader, which is slower but strict and
    knows lines, reads files with line ends or stray quotes in cells, and says which line is wrong.
    """
    content, text = _text(path)
    delimiter = _delimiter(text)
    names = _header(next(_records(text, delimiter, path), (1, []))[1], path)
    require_few_columns(path, len(names))
    arrow, compute = (arrow_module(name, path) for name in ("pyarrow", "pyarrow.compute"))
    columns = _quick_columns(content, delimiter, len(names), path)
    n_lines = text.count("\n") + (not text.endswith("\n"))
    if columns and len(columns[0]) == n_lines - 1:
        lines = np.arange(2, n_lines + 1)
    else:
        cells, lines = _cells(text, delimiter, len(names), path)
        columns = [arrow.array(column, arrow.string()) for column in cells]
    columns = map(compute.utf8_trim_whitespace, columns)
    if delimiter == ";":  # usual in countries that write 1,5 for 1.5
        columns = (compute.replace_substring_regex(c, DECIMAL_COMMA, r"\1.\2") for c in columns)
    found = [column.to_numpy(zero_copy_only=False).astype(object) for column in columns]
    return Table(dict(zip(names, found, strict=True)), str(path), lines, "line")


def _text(path: Path) -> tuple[bytes, str]:
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        raise InputError(
            f"{path} is not a text file, whatever its name says; save it as CSV in UTF-8"
        )
    try:
        return content, content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8 text; save it as CSV in UTF-8") from error


def _quick_columns(content: bytes, delimiter: str, width: int, path: Path) -> list[Any] | None:
    """The cells below the header, all as text; None unless quotes and widths are as expected."""
    if b'"' in content and b'"' in _QUOTED_CELL.sub(b"", content):
        return None
    arrow, reader = (arrow_module(name, path) for name in ("pyarrow", "pyarrow.csv"))
    names = [str(j) for j in range(width)]
    try:
        return (
            reader.read_csv(
                arrow.BufferReader(content),
                reader.ReadOptions(
                    use_threads=False,
                    block_size=min(len(content) + 1, MOST_BLOCK_BYTES),
                    column_names=names,
                ),
                reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                reader.ConvertOptions(column_types=dict.fromkeys(names, arrow.string())),
            )
            .slice(1)
            .columns
        )
    except arrow.ArrowInvalid:
        return None


def _delimiter(text: str) -> str:
    """The character at which the first lines fall into equally many, and into most, fields."""
    head = list(islice(filter(str.strip, io.StringIO(text, newline="")), 20))

    def agreement(delimiter: str) -> tuple[bool, float, int]:
        try:
            reader = csv.reader(head, delimiter=delimiter, skipinitialspace=True)
            widths = [len(record) for record in reader] or [0]
        except csv.Error:
            return False, 0.0, 0
        return widths[0] > 1, widths.count(widths[0]) / len(widths), widths[0]

    return max(DELIMITERS, key=agreement)


def _records(text: str, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the line on which it starts."""
    stream = io.StringIO(text, newline="")
    reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 1
    try:
        for record in reader:
            if len(record) > 1 or "".join(record).strip():
                yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {line}: {error}; correct the quotes on this line"
        ) from error


def _cells(text: str, delimiter: str, width: int, path: Path) -> tuple[list[Any], np.ndarray]:
    """The columns below the header, and the lines on which their records start."""
    lines, rows = [], []
    for line, record in islice(_records(text, delimiter, path), 1, None):
        if len(record) != width:
            raise InputError(
                f"{path}, line {line}: expected {width} values as in the header, found "
                f"{len(record)}; correct the line, or put quotes around text that holds "
                f"{delimiter!r}"
            )
        lines.append(line)
        rows.append(record)
    return [[row[j] for row in rows] for j in range(width)], np.array(lines, int)


def _header(record: list[str], path: Path) -> list[str]:
    names = [" ".join(name.split()) for name in record]
    if not any(names):
        raise InputError(f"{path} has no column names; give a file with a table")
    if not names[0]:
        names[0] = "index"  # pandas leaves the name of its index empty
    if "" in names:
        raise InputError(
            f"{path}: column {names.index('') + 1} has no name; name it in the first line, "
            "or remove the column"
        )
    if _are_numbers(names[names[0] == "index" :]):
        raise InputError(f"{path} has no header; add a first line with the column names")
    return distinct(names, path)


def _are_numbers(names: list[str]) -> bool:
    """Whether a header is data; names that count (0, 1, 2…) are what tables without names get."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return numbers != [numbers[0] + i for i in range(len(numbers))]


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_arrow,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".npz": read_npz,
    ".npy": read_npy,
}


# --- rows that stay in their files -------------------------------------------------------------


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
        path = Path(source)
        if files := parquet_files(path):
            return parquet_rows(files, columns)
        return _picked(open_matrix(path), columns)
    if isinstance(source, LazyRows) or (isinstance(source, np.ndarray) and is_lazy(source)):
        return _picked(source, columns)
    if hasattr(source, "chunks") and hasattr(source, "shape"):
        return _picked(_chunked(source), columns)
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


def open_matrix(path: Path) -> Rows:
    """The rows of an `.npy` file or of a Zarr array."""
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    if path.suffix.lower() == ".npy" and path.is_file():
        return mapped(path)
    if is_zarr(path):
        return _chunked(open_zarr(path), path)
    raise InputError(f"{path} cannot be read row by row; give {STREAMED_KINDS}")


def _chunked(array: Any, path: Path | None = None) -> GroupedRows:
    """An array with a `chunks` attribute, as those of Zarr and HDF5 have, read chunk by chunk."""
    n, sizes = array.shape[0], array.chunks[0] if array.chunks else array.shape[0]
    if isinstance(sizes, tuple):  # Dask lists the sizes of all chunks
        starts = [0, *np.cumsum(sizes).tolist()]
    else:
        starts = [*range(0, n, int(sizes)), n]

    def read(i: int) -> np.ndarray:
        with nullcontext() if path is None else decoding(path):
            return np.asarray(array[starts[i] : starts[i + 1]])

    return GroupedRows(read, starts, int(array.shape[1]), array.dtype)
