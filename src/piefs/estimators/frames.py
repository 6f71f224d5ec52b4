"""Frames with text, categories, dates or gaps, encoded as `piefs fit` does."""

from typing import Any

import numpy as np

from piefs.data.encoder import TableEncoder
from piefs.data.table import Table

MISSING = ("NAType", "NaTType")
"""Types of pandas' own words for a gap, found without importing it."""


def raw_table(X: Any) -> Table | None:
    """A frame as a table; None if it holds plain numbers alone."""
    table = as_table(X)
    is_plain = all(
        cells.dtype.kind in "biuf" and not np.isnan(cells).any() for cells in table.columns.values()
    )
    return None if is_plain else table


def as_table(X: Any) -> Table:
    """The columns of a frame, with numbers as numbers and all else as text; a gap is empty."""
    names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    columns = {}
    for i, name in enumerate(names):
        column: Any = X.iloc[:, i] if hasattr(X, "iloc") else X[name]
        values = np.asarray(column)
        if values.dtype.kind not in "biuf":  # numbers, the usual case, are taken as they are
            values = cells_of(list(getattr(column, "to_pylist", column.__iter__)()))  # of pyarrow
        columns[str(name)] = values
    return Table(columns, "X")


def cells_of(values: list[Any]) -> np.ndarray:
    """Values of any type as the cells of a column."""
    known = [None if _is_gap(value) else value for value in values]
    there = [value for value in known if value is not None]
    if there and all(isinstance(value, bool | np.bool_) for value in there):
        if len(there) == len(known):
            return np.array(known, bool)
    elif there and all(isinstance(value, int | float | np.number) for value in there):
        return np.array([np.nan if value is None else value for value in known], float)
    return np.array(["" if value is None else _as_text(value) for value in known], object)


def _as_text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _is_gap(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    is_nan = isinstance(value, float | np.floating) and np.isnan(value)
    return value is None or is_nan or type(value).__name__ in MISSING


def encoded(estimator: Any, X: Any, *, reset: bool) -> Any:
    """The features of a raw frame, and a frame of plain numbers as it is.

    A fit keeps how it read the columns, as plain values, in `table_`; new rows are read likewise.
    """
    if reset:
        if (table := raw_table(X)) is None:
            return X
        encoder = TableEncoder.fit(table, "impute")
        estimator.table_ = encoder.to_document()
        return encoder.transform(table)
    if getattr(estimator, "table_", None) is None:
        return X
    return TableEncoder.from_document(estimator.table_).transform(as_table(X))
