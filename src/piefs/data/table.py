"""Tables in memory: named columns that know the place of each row in its file.

A cell means a number, a boolean, a date or text, or it is missing.
"""

import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from piefs.errors import InputError

Block = dict[str, np.ndarray]
"""Columns by name."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "t", "y", "1"), 1.0),
    **dict.fromkeys(("false", "no", "f", "n", "0"), 0.0),
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_NAMES = 1_000  # among which a misspelling is looked for


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: float64, int64 or bool numbers, or text (dtype object).

    Messages point at a row by `source`, `unit` and `lines`: "churn.csv … line 7".
    """

    columns: dict[str, np.ndarray]
    source: str = "the table"
    lines: Any = None
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
        require_column(name, self.names, self.source)
        return self.columns[name]

    def without(self, names: Iterable[str]) -> "Table":
        """The other columns."""
        gone = set(names)
        kept = {name: cells for name, cells in self.columns.items() if name not in gone}
        return Table(kept, self.source, self.lines, self.unit)

    def take(self, rows: np.ndarray) -> "Table":
        """The given rows, in the given order, with their places."""
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        return Table(columns, self.source, self.lines[rows], self.unit)

    def place(self, row: int) -> str:
        """The place of a row in its file: `line 7`."""
        return f"{self.unit} {self.lines[row]}"


def require_column(name: str, names: tuple[str, ...], source: str) -> None:
    """Refuse a name that is not among those of the columns."""
    if name not in names:
        raise InputError(
            f"{source} has no column {name!r}{suggestion(str(name), names)}; "
            f"its columns are {listing(names)}"
        )


def listing(items: Iterable[str], most: int = 20) -> str:
    """Items separated by commas, at most so many of them."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def suggestion(name: str, names: Iterable[str]) -> str:
    """A did-you-mean with the closest names, or nothing."""
    lowered = {other.lower(): other for other in islice(names, MOST_NAMES)}
    close = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered)]
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def _cells(values: np.ndarray) -> np.ndarray:
    """A column in one of the four types a table has."""
    if values.ndim != 1:
        raise InputError(f"a column has one value a row, not the shape {list(values.shape)}")
    if values.dtype == bool:
        return values.view(np.uint8) != 0  # bytes of a file may be neither 0 nor 1
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
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return "" if value is None else text.strip()


def distinct(names: list[str], path: Path) -> list[str]:
    """The names, if no two are equal."""
    if repeated := [repr(name) for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{path}: more than one column is called {listing(repeated)}; rename them")
    return names


def _number(cell: str) -> float:
    if "_" in cell:  # Python reads 1_2 as 12; in a table it is a code
        raise ValueError
    return float(cell)


def _date(cell: str) -> float:
    moment = datetime.fromisoformat(cell.replace("/", "-"))
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) / timedelta(days=1)


PARSERS = {"number": _number, "boolean": lambda cell: BOOLEANS[cell.lower()], "date": _date}


def is_missing(cells: np.ndarray) -> np.ndarray:
    """Which cells are empty, a word for missing, or no finite number."""
    if cells.dtype != object:
        return ~np.isfinite(cells)
    return np.fromiter((cell.lower() in MISSING for cell in cells), bool, len(cells))


def parse(cells: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells as floats, NaN if missing or not finite, and which of them are unreadable."""
    if cells.dtype != object:
        values = np.where(is_missing(cells), np.nan, cells.astype(np.float64))
        allowed = np.isin(values, (0, 1)) if kind == "boolean" else kind == "number"
        return values, np.isfinite(values) & ~np.asarray(allowed)
    if kind == "number" and not any("_" in cell for cell in cells):
        with suppress(ValueError):  # all are numbers: the usual case, at five times the speed
            values = cells.astype(np.float64)
            return np.where(np.isfinite(values), values, np.nan), np.zeros(len(cells), bool)
    known = {cell: _parsed(cell, PARSERS[kind]) for cell in set(cells)}
    values = np.fromiter((known[cell] for cell in cells), np.float64, len(cells))
    unreadable = np.isinf(values)
    values[unreadable] = np.nan
    return values, unreadable


def _parsed(cell: str, parser: Callable[[str], float]) -> float:
    """The cell's value; infinity, which no value may be, marks a cell that cannot be read."""
    try:
        value = parser(cell)
    except (ValueError, OverflowError, KeyError):
        return math.nan if cell.lower() in MISSING else math.inf
    return value if math.isfinite(value) else math.nan


def kind_of(cells: np.ndarray) -> str:
    """The first of number, boolean and date that all cells are, else category."""
    if cells.dtype != object:
        return "boolean" if cells.dtype == bool else "number"
    return next((kind for kind in PARSERS if not parse(cells, kind)[1].any()), "category")


def texts(cells: np.ndarray) -> np.ndarray:
    """Cells as text; 1.0 is `1`, since a gap elsewhere in the column makes 1 a float."""
    if cells.dtype == object:
        return cells
    plain = (int(v) if isinstance(v, float) and v.is_integer() else v for v in cells.tolist())
    return np.fromiter(map(str, plain), object, len(cells))


def coded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values in order, and which of them each value is (int32)."""
    found = np.unique(values)
    return found, np.searchsorted(found, values).astype(np.int32)
