"""What the cells of a table mean: numbers, booleans, dates or text; and which are missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_TRUE, _FALSE = ("true", "yes", "t", "y", "1"), ("false", "no", "f", "n", "0")
BLOCK_ROWS = 2**20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _number(cell: str) -> float:
    if "_" in cell:  # Python reads 1_2 as 12; in a table it is a code
        raise ValueError
    return float(cell)


def _boolean(cell: str) -> float:
    if cell.lower() not in _TRUE + _FALSE:
        raise ValueError
    return float(cell.lower() in _TRUE)


def _date(cell: str) -> float:
    moment = datetime.fromisoformat(cell.replace("/", "-"))
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) / timedelta(days=1)


PARSERS: dict[str, Callable[[str], float]] = {
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}


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
    if kind == "number" and (numbers := _all_numbers(cells)) is not None:
        return numbers, np.zeros(len(cells), bool)
    known = {cell: _parsed(cell, PARSERS[kind]) for cell in set(cells)}
    values = np.fromiter((known[cell] for cell in cells), np.float64, len(cells))
    unreadable = np.isinf(values)
    values[unreadable] = np.nan
    return values, unreadable


def _all_numbers(cells: np.ndarray) -> np.ndarray | None:
    """Cells as floats if all are numbers: the usual case, at five times the speed."""
    if any("_" in cell for cell in cells):
        return None
    try:
        values = cells.astype(np.float64)
    except ValueError:
        return None
    return np.where(np.isfinite(values), values, np.nan)


def _parsed(cell: str, parser: Callable[[str], float]) -> float:
    """The cell's value; infinity, which no value may be, marks a cell that cannot be read."""
    try:
        value = parser(cell)
    except (ValueError, OverflowError):
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
    """The distinct values in order, and which of them each value is (int32), block by block."""
    starts = range(0, len(values), BLOCK_ROWS)
    parts = [np.unique(values[start : start + BLOCK_ROWS]) for start in starts]
    distinct = np.unique(np.concatenate(parts)) if parts else np.unique(values)
    codes = np.empty(len(values), np.int32)
    for start in starts:
        block = values[start : start + BLOCK_ROWS]
        codes[start : start + BLOCK_ROWS] = np.searchsorted(distinct, block)
    return distinct, codes
