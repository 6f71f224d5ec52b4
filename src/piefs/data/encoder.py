"""From a table's columns to a matrix of numbers, at prediction exactly as at training.

Numbers stay as they are, booleans become 0 and 1, dates days since 1970-01-01, text one column a
category. What a column is, and what stands in for its missing values, is learned once, and is kept
with the model as plain JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from piefs.data.column_encoding import ColumnEncoding, column_from, counted, fit_column, require
from piefs.data.table import Table, listing, suggestion
from piefs.errors import InputError, ModelFileError

POLICIES = ("error", "impute")


@dataclass(frozen=True)
class TableEncoder:
    """The encodings of all columns, and whether gaps are an error or are filled (`impute`)."""

    columns: tuple[ColumnEncoding, ...]
    missing: str = "error"

    @classmethod
    def fit(
        cls, table: Table, missing: str = "error", rows: np.ndarray | None = None
    ) -> TableEncoder:
        """Learn from the training `rows`, by default all; no other row changes any feature.

        Cells that cannot be used are an error wherever in the table they are, and a column is a
        running number if it counts all rows.
        """
        if missing not in POLICIES:
            raise InputError(f"missing={missing!r} is unknown; choose one of {listing(POLICIES)}")
        chosen = np.arange(len(table)) if rows is None else np.sort(rows)
        encoder = cls(tuple(fit_column(table, name, chosen) for name in table.names), missing)
        if not encoder.feature_names:
            reasons = "; ".join(encoder.describe()[:10])
            raise InputError(f"{table.source} has no usable feature: {reasons}")
        encoder.transform(table)
        return encoder

    @property
    def used(self) -> tuple[ColumnEncoding, ...]:
        return tuple(column for column in self.columns if column.kind != "dropped")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.feature_names)

    def transform(self, table: Table) -> np.ndarray:
        """The features (n, d) of a table; its columns are found by name, others are ignored."""
        self._require_columns(table)
        blocks, gaps = zip(*(column.encode(table) for column in self.used), strict=True)
        if self.missing == "error":
            self._require_whole(table, gaps)
        return np.hstack(blocks)

    def _require_columns(self, table: Table) -> None:
        absent = [column.name for column in self.used if column.name not in table.columns]
        if absent:
            free = set(table.names) - {column.name for column in self.columns}
            lacking = listing(f"{name!r}{suggestion(name, free)}" for name in absent)
            columns = "column" if len(absent) == 1 else "columns"
            raise InputError(f"{table.source} lacks the {columns} {lacking}")

    def _require_whole(self, table: Table, gaps: tuple[np.ndarray, ...]) -> None:
        found = [
            f"column {column.name!r} has {counted(int(gap.sum()), 'missing or infinite value')} "
            f"(first: {table.place(int(gap.argmax()))})"
            for column, gap in zip(self.used, gaps, strict=True)
            if gap.any()
        ]
        if found:
            raise InputError(
                f"{table.source}: {listing(found, 5)}; fill them in, or fit with --missing impute"
            )

    def unseen(self, table: Table) -> dict[str, int]:
        """By column, how many cells have a category without a feature: new, or rare in training."""
        counts = {}
        for column in self.used:
            if column.kind == "category":
                encoded, gaps = column.encode(table)
                counts[column.name] = int(np.sum(~gaps & ~encoded.any(axis=1)))
        return {name: count for name, count in counts.items() if count}

    def describe(self) -> list[str]:
        """One sentence a column."""
        return [column.describe() for column in self.columns]

    def to_document(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        columns = [asdict(column) | {"categories": [*column.categories]} for column in self.columns]
        return {"missing": self.missing, "columns": columns}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> TableEncoder:
        """The encoder of a model file, which may come from anyone: all of it is checked."""
        try:
            require(
                isinstance(document, dict) and document.keys() == {"missing", "columns"}, "entries"
            )
            require(document["missing"] in POLICIES, "the missing policy")
            encoder = cls(tuple(map(column_from, document["columns"])), document["missing"])
            names = [column.name for column in encoder.columns]
            require(len(set(names)) == len(names) and bool(encoder.used), "the columns")
        except (ValueError, TypeError) as error:
            raise ModelFileError(f"the model's table encoding is damaged ({error})") from error
        return encoder
