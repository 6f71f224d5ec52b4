"""Tables in and out: `.csv`, `.tsv`, `.parquet`, `.arrow`, `.feather`, `.npz` and `.npy`.

The cells of a text file stay text here; what they mean is decided in `piefs.io.encoding`. Whatever
is wrong with a file becomes one line that names the file and says what to do. No pickle is opened.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from piefs.errors import InputError
from piefs.io import atomic

DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: float64, int64 or bool numbers, or text (dtype object).

    `source` and `lines` say where the rows come from, so that a message can point at them.
    """

    columns: dict[str, np.ndarray]
    source: str = "the table"
    lines: np.ndarray | None = None
    unit: str = "row"

    def __post_init__(self) -> None:
        columns = {name: _cells(np.asarray(cells)) for name, cells in self.columns.items()}
        if not columns:
            raise InputError(f"{self.source} has no columns")
        lengths = {name: len(cells) for name, cells in columns.items()}
        if len(set(lengths.values())) > 1:
            sizes = listing(f"{name} has {length}" for name, length in lengths.items())
            raise InputError(f"{self.source}: all columns need the same number of rows; {sizes}")
        object.__setattr__(self, "columns", columns)
        if self.lines is None:
            object.__setattr__(self, "lines", np.arange(1, len(self) + 1))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def column(self, name: str) -> np.ndarray:
        """The cells of a column that has to be there."""
        if name not in self.columns:
            raise InputError(
                f"{self.source} has no column {name!r}{suggestion(name, self.names)}; "
                f"its columns are {listing(self.names)}"
            )
        return self.columns[name]

    def without(self, names: Iterable[str]) -> Table:
        """The other columns."""
        gone = set(names)
        kept = {name: cells for name, cells in self.columns.items() if name not in gone}
        return Table(kept, self.source, self.lines, self.unit)

    def take(self, rows: np.ndarray) -> Table:
        """The given rows, in the given order; they remember where they come from."""
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        return Table(columns, self.source, np.asarray(self.lines)[rows], self.unit)

    def place(self, row: int) -> str:
        """Where the user finds a row: `line 7`."""
        return f"{self.unit} {np.asarray(self.lines)[row]}"


def listing(items: Iterable[str], most: int = 20) -> str:
    """Items in a row, the last of very many left out."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def suggestion(name: str, names: Iterable[str]) -> str:
    """A question after the likeliest misspelling, or nothing."""
    lowered = {other.lower(): other for other in names}
    close = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered)]
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def _cells(values: np.ndarray) -> np.ndarray:
    """A column in one of the four types a table has."""
    if values.ndim != 1:
        raise InputError(f"a column has one value a row, not the shape {list(values.shape)}")
    if values.dtype == bool:
        return values
    if values.dtype.kind in "iuf":  # the largest unsigned integers do not fit into int64
        kind = np.int64 if np.can_cast(values.dtype, np.int64) else np.float64
        return values.astype(kind, copy=False)
    if values.dtype.kind == "M":
        values = np.where(np.isnat(values), "", np.datetime_as_string(values))
    if values.dtype.kind not in "USO":
        raise InputError(f"columns hold numbers or text, not {values.dtype}")
    if values.dtype == object and all(type(value) is str for value in values):
        return values
    return np.fromiter(map(_text, values), dtype=object, count=len(values))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    return str(value).strip()


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
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
    if not len(table):
        raise InputError(f"{path} has columns but no rows; add rows")
    return table


def _read_csv(path: Path) -> Table:
    text = _decoded(path)
    delimiter = _delimiter(text)
    records = _records(text, delimiter, path)
    names = _header(next(records, (1, []))[1], path)
    lines, rows = [], []
    for line, record in records:
        if len(record) != len(names):
            raise InputError(
                f"{path}, line {line}: expected {len(names)} values as in the header, found "
                f"{len(record)}; correct the line, or put quotes around text that holds "
                f"{delimiter!r}"
            )
        lines.append(line)
        rows.append([cell.strip() for cell in record])
    cells = np.array(rows, dtype=object).reshape(-1, len(names))
    if delimiter == ";":  # the custom of places that write 1,5 for 1.5
        for row in cells:
            row[:] = [c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in row]
    return Table(dict(zip(names, cells.T, strict=True)), str(path), np.array(lines, int), "line")


def _decoded(path: Path) -> str:
    content = path.read_bytes()
    if b"\0" in content:
        raise InputError(
            f"{path} is not a text file, whatever its name says; save it as CSV in UTF-8"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8 text; save it as CSV in UTF-8") from error


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
    return _distinct(names, path)


def _distinct(names: list[str], path: Path) -> list[str]:
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{path}: more than one column is called {listing(repeated)}; rename them")
    return names


def _are_numbers(names: list[str]) -> bool:
    """Whether a header is data; names that count (0, 1, 2…) are what tables without names get."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return numbers != [numbers[0] + i for i in range(len(numbers))]


def _read_arrow(path: Path) -> Table:
    """A parquet file, or an Arrow one, which `.arrow` and `.feather` both name."""
    pyarrow = _pyarrow(path)
    try:
        if path.suffix.lower() == ".parquet":
            content = import_module("pyarrow.parquet").ParquetFile(path).read()
        else:
            content = import_module("pyarrow.feather").read_table(path, memory_map=False)
        columns = [_from_arrow(column, pyarrow.types) for column in content.columns]
    except (pyarrow.ArrowException, ValueError) as error:
        kind = path.suffix[1:].lower()
        raise InputError(f"{path} is not a readable {kind} file; write it anew") from error
    names = _distinct(content.column_names, path)
    return Table(dict(zip(names, columns, strict=True)), str(path))


def _from_arrow(column: Any, types: Any) -> np.ndarray:
    whole_booleans = types.is_boolean(column.type) and not column.null_count
    if whole_booleans or types.is_floating(column.type) or types.is_integer(column.type):
        return column.to_numpy()
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


def _pyarrow(path: Path) -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        kind = path.suffix[1:].lower()
        raise InputError(
            f"{path}: {kind} files need pyarrow; pip install piefs[parquet]"
        ) from error


def _read_npz(path: Path) -> Table:
    arrays = _arrays(path, b"PK")
    columns = [pair for name in arrays for pair in _split(name, arrays[name], path).items()]
    _distinct([name for name, _ in columns], path)
    return Table(dict(columns), str(path))


def _read_npy(path: Path) -> Table:
    array = _arrays(path, b"\x93NUMPY")["x"]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} holds {array.dtype}{list(array.shape)}; a table is a 2-D array of numbers"
        )
    return Table(_split("x", array, path), str(path))


def _split(name: str, array: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    """The columns of an array: its own name if it is one, `x0`, `x1`, … if there are several."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "biufUSM":
        raise InputError(
            f"{path}: array {name!r} is {array.dtype}{list(array.shape)}; "
            "give numbers or text, one row (1-D or 2-D) an example"
        )
    if array.ndim == 1 or (array.shape[1] == 1 and name.lower() != "x"):
        return {name: array.reshape(-1)}
    return {f"{name}{j}": column for j, column in enumerate(array.T)}


def _arrays(path: Path, magic: bytes) -> dict[str, np.ndarray]:
    with path.open("rb") as stream:
        if stream.read(len(magic)) != magic:
            raise InputError(f"{path} is not a {path.suffix} file, whatever its name says")
        stream.seek(0)
        try:
            content = np.load(stream, allow_pickle=False)
            return {"x": content} if isinstance(content, np.ndarray) else dict(content)
        except Exception as error:  # zip, zlib, header and memory errors: all mean the same
            if "allow_pickle" in str(error):
                raise InputError(
                    f"{path} holds pickled objects, which are never opened; "
                    "save plain arrays of numbers or text"
                ) from error
            raise InputError(f"{path} is damaged; write it anew") from error


def write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Columns as a file, in the format that the suffix says; whole, or not there."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"cannot write {path}; its name must end in one of {listing(_WRITERS)}")
    table = Table(columns, str(path))
    # Numbers keep their own precision, so that float32 is not written with the digits of float64.
    kept = {name: cells for name, cells in columns.items() if table.columns[name].dtype != object}
    _WRITERS[path.suffix.lower()](path, table.columns | kept)


def format_csv(columns: dict[str, np.ndarray], delimiter: str = ",") -> str:
    """Columns as comma-separated text; each float has the digits that give it back, no more."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    # Python's own numbers print fastest; those narrower than 64 bits would gain digits on the way.
    plain = (cells.tolist() if cells.dtype.itemsize == 8 else cells for cells in columns.values())
    writer.writerows(zip(*(map(str, cells) for cells in plain), strict=True))
    return stream.getvalue()


def _write_csv(path: Path, columns: dict[str, np.ndarray]) -> None:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    atomic.write_bytes(path, format_csv(columns, delimiter).encode())


def _write_npz(path: Path, columns: dict[str, np.ndarray]) -> None:
    """As `np.savez` does, which has no room for columns called `file` or `allow_pickle`."""

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, cells in columns.items():
                array = cells.astype(str) if cells.dtype == object else cells
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)

    atomic.write_with(path, write)


def _write_npy(path: Path, columns: dict[str, np.ndarray]) -> None:
    text = [name for name, cells in columns.items() if cells.dtype == object]
    if text:
        raise InputError(f"{path}: .npy holds numbers only, {listing(text)} is text; use .csv")
    stream = io.BytesIO()
    np.save(stream, np.column_stack(list(columns.values())), allow_pickle=False)
    atomic.write_bytes(path, stream.getvalue())


def _write_arrow(path: Path, columns: dict[str, np.ndarray]) -> None:
    pyarrow = _pyarrow(path)
    content = pyarrow.table({name: pyarrow.array(cells) for name, cells in columns.items()})
    if path.suffix.lower() == ".parquet":
        write = import_module("pyarrow.parquet").write_table
    else:
        write = import_module("pyarrow.feather").write_feather
    atomic.write_with(path, lambda temporary: write(content, temporary))


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_arrow,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".npz": _read_npz,
    ".npy": _read_npy,
}
_WRITERS: dict[str, Callable[[Path, dict[str, np.ndarray]], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_csv,
    ".parquet": _write_arrow,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
    ".npz": _write_npz,
    ".npy": _write_npy,
}
