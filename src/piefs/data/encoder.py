"""From a table's columns to a matrix of numbers, at prediction exactly as at training.

Numbers stay as they are, booleans become 0 and 1, dates days since 1970-01-01, text one column per
category. The kind of a column and the fill for its missing values are learned once, and are kept
with the model as plain JSON.
"""

import re
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, get_type_hints

import numpy as np

from piefs.data.table import EPOCH, Table, is_missing, kind_of, listing, parse, suggestion, texts
from piefs.errors import InputError, ModelFileError

POLICIES = ("error", "impute")
MAX_CATEGORIES = 20
_ID_NAME = re.compile(r"(?i:^(?:id|index)|[_\-. ]id)$|[a-z](?:Id|ID)$")
_REASONS = {
    "constant": "it has the same value in every row",
    "empty": "it has no values",
    "identifier": "it looks like an identifier (use --id {name} to carry it through)",
}
_WORDS = {  # for cells of a kind, for a column of it, and for what replaces a gap
    "number": ("numbers", "number", "replaced by the median {fill:g}"),
    "boolean": ("yes or no", "boolean, as 1 and 0", "replaced by the more frequent {fill:g}"),
    "date": ("dates", "date, as days since 1970-01-01", "replaced by the median {day}"),
}


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column is encoded.

    `kind` is number, boolean, date, category or dropped; `fill` replaces missing values, of which
    training had `n_missing`; `n_categories` counts also those too rare for a column of their own.
    """

    name: str
    kind: str
    fill: float = 0.0
    n_missing: int = 0
    categories: tuple[str, ...] = ()
    n_categories: int = 0
    reason: str = ""

    @property
    def feature_names(self) -> tuple[str, ...]:
        if self.kind == "category":
            return tuple(f"{self.name}={category}" for category in self.categories)
        return () if self.kind == "dropped" else (self.name,)

    def encode(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """The column's features with gaps filled, and a mask of the gaps."""
        cells = table.column(self.name)
        if self.kind == "category":
            known = texts(cells)[:, None] == np.array(self.categories, dtype=object)
            return known.astype(np.float64), is_missing(cells)
        values, unreadable = parse(cells, self.kind)
        if unreadable.any():
            raise _unreadable(table, self.name, self.kind, int(unreadable.argmax()))
        gaps = np.isnan(values)
        return np.where(gaps, self.fill, values)[:, None], gaps

    def describe(self) -> str:
        """How the column is encoded, in words."""
        if self.kind == "dropped":
            return f"{self.name}: dropped, {_REASONS[self.reason].format(name=self.name)}"
        about, gap = self._categories() if self.kind == "category" else _WORDS[self.kind][1:]
        if not self.n_missing:
            return f"{self.name}: {about}"
        day = EPOCH + timedelta(days=float(np.clip(self.fill, -719_162, 2_932_896)))  # Python's
        filled = gap.format(fill=self.fill, day=day.date())
        return f"{self.name}: {about}, {_counted(self.n_missing, 'missing value')} {filled}"

    def _categories(self) -> tuple[str, str]:
        n, shown = len(self.categories), listing(self.categories)
        each = f"for each of the {n} most frequent" if self.n_categories > n else f"each ({shown})"
        return f"{self.n_categories} categories, one column {each}", "left without a category"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _unreadable(table: Table, name: str, kind: str, row: int) -> InputError:
    cell = str(table.columns[name][row])
    shown = cell if len(cell) <= 40 else cell[:40] + "…"
    return InputError(
        f"{table.source}: column {name!r} should hold {_WORDS[kind][0]}, but {table.place(row)} "
        f"has {shown!r}; correct the cell, or leave it empty and fit with --missing impute"
    )


def _fit_column(table: Table, name: str, rows: np.ndarray) -> ColumnEncoding:
    """The encoding of a column, judged by its training rows."""
    cells = table.columns[name]
    kind = kind_of(cells[rows])
    if kind == "category":
        return _fit_category(table, name, rows)
    values, _ = parse(cells, kind)
    seen = np.sort(values[rows][np.isfinite(values[rows])])
    if not seen.size:
        return ColumnEncoding(name, "dropped", reason="empty")
    if seen[0] == seen[-1]:
        return ColumnEncoding(name, "dropped", reason="constant")
    if kind == "number" and _is_identifier(name, values, table):
        return ColumnEncoding(name, "dropped", reason="identifier")
    # Halves are added, since the sum of two large numbers may be infinite.
    median = seen[(seen.size - 1) // 2] / 2 + seen[seen.size // 2] / 2
    fill = float(seen.mean() > 0.5) if kind == "boolean" else float(median)
    return ColumnEncoding(name, kind, fill, n_missing=int(np.isnan(values).sum()))


def _is_identifier(name: str, values: np.ndarray, table: Table) -> bool:
    """Whether integers count the rows of the file, or are distinct in a column named like an id."""
    if values.size < 3 or not np.all(np.abs(values) < 2**53) or np.any(values != np.trunc(values)):
        return False
    steps, is_distinct = np.diff(values), len(np.unique(values)) == values.size
    counts = np.all(steps == 1) or np.all(steps == np.diff(table.lines))
    return bool(counts) or (is_distinct and bool(_ID_NAME.search(name)))


def _fit_category(table: Table, name: str, rows: np.ndarray) -> ColumnEncoding:
    cells = texts(table.columns[name])
    filled = rows[~is_missing(cells[rows])]
    counts = Counter(cells[filled])
    if len(counts) > MAX_CATEGORIES:
        for kind in ("number", "date"):
            _, unreadable = parse(cells[filled], kind)
            if unreadable.mean() <= 0.1:  # numbers with a slip among them, not categories
                raise _unreadable(table, name, kind, filled[unreadable.argmax()])
    if len(counts) == 1:
        return ColumnEncoding(name, "dropped", reason="constant")
    if len(filled) > 20 and len(counts) > 0.9 * len(filled):
        return ColumnEncoding(name, "dropped", reason="identifier")
    frequent = sorted(counts, key=lambda category: (-counts[category], category))
    categories = tuple(sorted(frequent[:MAX_CATEGORIES]))
    n_missing = int(is_missing(cells).sum())
    return ColumnEncoding(name, "category", 0.0, n_missing, categories, len(counts))


@dataclass(frozen=True)
class TableEncoder:
    """The encodings of all columns; gaps are an error, or filled (`impute`)."""

    columns: tuple[ColumnEncoding, ...]
    missing: str = "error"

    @classmethod
    def fit(
        cls, table: Table, missing: str = "error", rows: np.ndarray | None = None
    ) -> "TableEncoder":
        """Learn from the training `rows`, by default all; unreadable cells are an error in any."""
        if missing not in POLICIES:
            raise InputError(f"missing={missing!r} is unknown; choose one of {listing(POLICIES)}")
        chosen = np.arange(len(table)) if rows is None else np.sort(rows)
        encoder = cls(tuple(_fit_column(table, name, chosen) for name in table.names), missing)
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
        if absent := [column.name for column in self.used if column.name not in table.columns]:
            free = set(table.names) - {column.name for column in self.columns}
            lacking = listing(f"{name!r}{suggestion(name, free)}" for name in absent)
            raise InputError(f"{table.source} lacks the column{'s' * (len(absent) > 1)} {lacking}")
        blocks, gaps = zip(*(column.encode(table) for column in self.used), strict=True)
        found = [
            f"column {column.name!r} has {_counted(int(gap.sum()), 'missing or infinite value')} "
            f"(first: {table.place(int(gap.argmax()))})"
            for column, gap in zip(self.used, gaps, strict=True)
            if gap.any()
        ]
        if found and self.missing == "error":
            raise InputError(
                f"{table.source}: {listing(found, 5)}; fill them in, or fit with --missing impute"
            )
        return np.hstack(blocks)

    def unseen(self, table: Table) -> dict[str, int]:
        """By column, how many cells have a category without a feature: new, or rare in training."""
        counts = {}
        for column in self.used:
            if column.kind == "category":
                encoded, gaps = column.encode(table)
                if n := int(np.sum(~gaps & ~encoded.any(axis=1))):
                    counts[column.name] = n
        return counts

    def describe(self) -> list[str]:
        """One sentence a column."""
        return [column.describe() for column in self.columns]

    def to_document(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        columns = [asdict(column) | {"categories": [*column.categories]} for column in self.columns]
        return {"missing": self.missing, "columns": columns}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "TableEncoder":
        """The encoder of a model file, every entry of it checked."""
        try:
            _require(document.keys() == {"missing", "columns"}, "entries")
            _require(document["missing"] in POLICIES, "the missing policy")
            encoder = cls(tuple(map(_column_from, document["columns"])), document["missing"])
            names = [column.name for column in encoder.columns]
            _require(len(set(names)) == len(names) and bool(encoder.used), "the columns")
        except (AttributeError, ValueError, TypeError) as error:
            raise ModelFileError(f"the model's table encoding is damaged ({error})") from error
        return encoder


_FIELDS = get_type_hints(ColumnEncoding) | {"categories": list}


def _column_from(document: dict[str, Any]) -> ColumnEncoding:
    _require({name: type(value) for name, value in document.items()} == _FIELDS, "a column's types")
    categories: Any = tuple(document["categories"])
    column = ColumnEncoding(**document | {"categories": categories})
    kind, fill = column.kind, column.fill
    for name, holds in (
        ("kind", kind in (*_WORDS, "category", "dropped")),
        ("fill", np.isfinite(fill) and (kind != "boolean" or fill in (0, 1))),
        ("n_missing", 0 <= column.n_missing < 2**53),
        ("categories", {*map(type, categories)} == ({str} if kind == "category" else set())),
        ("categories", list(categories) == sorted(set(categories))[:MAX_CATEGORIES]),
        ("n_categories", len(categories) <= column.n_categories < 2**53),
        ("reason", (column.reason in _REASONS) == (kind == "dropped")),
    ):
        _require(bool(holds), f"a column's {name}")
    return column


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} cannot be right")
