"""Text files of tables: comma, semicolon or tab between the cells, in UTF-8.

Cells stay text here; what they mean is decided in `piefs.data.encoder`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from piefs.data import atomic
from piefs.data.bounds import require_few_columns
from piefs.data.table import Table, distinct
from piefs.errors import InputError

DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


def read_csv(path: Path) -> Table:
    text = _decoded(path)
    delimiter = _delimiter(text)
    records = _records(text, delimiter, path)
    names = _header(next(records, (1, []))[1], path)
    require_few_columns(path, len(names))
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
    return distinct(names, path)


def _are_numbers(names: list[str]) -> bool:
    """Whether a header is data; names that count (0, 1, 2…) are what tables without names get."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return numbers != [numbers[0] + i for i in range(len(numbers))]


def format_csv(columns: dict[str, np.ndarray], delimiter: str = ",") -> str:
    """Columns as comma-separated text; each float has the digits that give it back, no more."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    # Python's own numbers print fastest; those narrower than 64 bits would gain digits on the way.
    plain = (cells.tolist() if cells.dtype.itemsize == 8 else cells for cells in columns.values())
    writer.writerows(zip(*(map(str, cells) for cells in plain), strict=True))
    return stream.getvalue()


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> None:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    atomic.write_bytes(path, format_csv(columns, delimiter).encode())
