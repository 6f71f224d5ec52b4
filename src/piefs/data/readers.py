"""Tables and rows from files, by suffix; text tables are CSV in UTF-8.

Cells of text stay text here; `piefs.data.encoder` decides what they mean. Whatever is wrong with a
file becomes one line that names the file and says what to do.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.files import reading
from piefs.data.npy import is_zarr, mapped_matrix, open_zarr, read_npy, read_npz
from piefs.data.parquet import parquet_files, parquet_rows, read_arrow
from piefs.data.rows import GroupedRows, LazyRows, PickedColumns, Rows, is_lazy, spooled
from piefs.data.table import Table, distinct, listing
from piefs.errors import InputError

STREAMED_KINDS = ".npy, .parquet, a folder of .parquet files, or .zarr"
DELIMITERS = ",;\t"
HEAD_BYTES = 2**20  # in which a header is looked for
DECIMAL_COMMA = re.compile(r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$")


def read_table(path: Path) -> Table:
    """The table in a file, read according to its suffix."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    if not path.is_file() or path.suffix.lower() not in _READERS:
        raise InputError(f"{path} is not a table; give one of {listing(_READERS)}")
    with reading(path):
        table = _READERS[path.suffix.lower()](path)
    if not len(table):
        raise InputError(f"{path} has columns but no rows; add rows")
    return table


# --- text --------------------------------------------------------------------------------------


def read_csv(path: Path) -> Table:
    """A table of text with a header; comma, semicolon or tab separate the cells."""
    text = _text(path)
    delimiter = _delimiter(text)
    records = _records(text, delimiter, path)
    names = _header(next(records, (1, []))[1], path)
    rows, lines = [], []
    for line, record in records:
        if len(record) != len(names):
            raise InputError(
                f"{path}, line {line}: expected {len(names)} values as in the header, found "
                f"{len(record)}; correct the line, or put quotes around text that holds "
                f"{delimiter!r}"
            )
        rows.append(record)
        lines.append(line)
    columns = {}
    for j, name in enumerate(names):
        cells = map(str.strip, [row[j] for row in rows])
        if delimiter == ";":  # usual in countries that write 1,5 for 1.5
            cells = (DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells)
        columns[name] = np.fromiter(cells, object, len(rows))
    return Table(columns, str(path), np.array(lines, int), "line")


def read_header(path: Path) -> Table | None:
    """The columns of a text table without its rows.

    None of other files, and where the whole file has to be seen to say what is wrong with it.
    """
    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        is_whole = not file.read(1)
    try:
        text = (head if is_whole else head[: head.rfind(b"\n") + 1]).decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if not text.strip() or "\0" in text:
        return None
    names = _header(next(_records(text, _delimiter(text), path))[1], path)
    return Table({name: np.zeros(0) for name in names}, str(path))


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        text, place = content.decode("utf-8-sig"), content.find(b"\0")
    except UnicodeDecodeError as error:
        text, place = "", error.start
    if place >= 0:
        line = content.count(b"\n", 0, place) + 1
        raise InputError(f"{path}, line {line}: not UTF-8 text; save it as CSV in UTF-8")
    return text


def _delimiter(text: str) -> str:
    """The character at which the first lines fall into equally many, and into most, fields."""
    head = list(islice(filter(str.strip, io.StringIO(text[: 2**20], newline="")), 20))

    def agreement(delimiter: str) -> tuple[bool, float, int]:
        reader = csv.reader(head, delimiter=delimiter, skipinitialspace=True)
        try:
            widths = [len(record) for record in reader] or [0]
        except csv.Error:  # a cell too long, which is said with its line later
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
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    **dict.fromkeys((".parquet", ".arrow", ".feather"), read_arrow),
    **{".npz": read_npz, ".npy": read_npy},
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
