"""Tables from files and to files, by suffix; text tables are CSV in UTF-8.

Cells of text stay text here; `piefs.data.encoder` decides what they mean. Whatever is wrong with a
file becomes one line that names the file and says what to do. A file is written whole or not at
all, at once or block by block, so that it may be larger than memory.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from piefs.data.binary import read_arrow, read_npy, read_npz, write_arrow, write_npy, write_npz
from piefs.data.files import reading, write_with
from piefs.data.table import Block, Table, distinct, listing
from piefs.errors import InputError

DELIMITERS = ",;\t"
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


def read_csv(path: Path) -> Table:
    """A table of text with a header; comma, semicolon or tab separate the cells."""
    text = _text(path)
    delimiter = _delimiter(text)
    (_, header), *records = _records(text, delimiter, path) or [(1, [])]
    names = _header(header, path)
    for line, record in records:
        if len(record) != len(names):
            raise InputError(
                f"{path}, line {line}: expected {len(names)} values as in the header, found "
                f"{len(record)}; correct the line, or put quotes around text that holds "
                f"{delimiter!r}"
            )
    columns = {}
    for j, name in enumerate(names):
        cells = (record[j].strip() for _, record in records)
        if delimiter == ";":  # usual in countries that write 1,5 for 1.5
            cells = (DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells)
        columns[name] = np.fromiter(cells, object, len(records))
    return Table(columns, str(path), np.array([line for line, _ in records], int), "line")


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


def _records(text: str, delimiter: str, path: Path) -> list[tuple[int, list[str]]]:
    """Each record that is not blank, with the line on which it starts."""
    stream = io.StringIO(text, newline="")
    reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True, strict=True)
    line, found = 1, []
    try:
        for record in reader:
            if len(record) > 1 or "".join(record).strip():
                found.append((line, record))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {line}: {error}; correct the quotes on it") from error
    return found


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


def csv_texts(blocks: Iterable[Block], delimiter: str = ",") -> Iterator[str]:
    """Blocks of columns as text with one header; floats have the digits that give them back."""
    for i, columns in enumerate(blocks):
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        if not i:
            writer.writerow(columns)
        # Python's own numbers print fastest; narrower ones would gain digits on the way.
        plain = (one.tolist() if one.dtype.itemsize == 8 else one for one in columns.values())
        writer.writerows(zip(*(map(str, cells) for cells in plain), strict=True))
        yield stream.getvalue()


def _write_csv(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_texts(blocks, delimiter))


def write_blocks(path: Path, blocks: Iterable[Block], n_rows: int) -> None:
    """Blocks of the same columns, `n_rows` rows in all, as one file in the format of its suffix."""
    check_writable(path)
    write = _WRITERS[path.suffix.lower()]
    write_with(path, lambda temporary: write(temporary, iter(blocks), n_rows))


def check_writable(path: Path) -> None:
    """Refuse, before any work, a file of another suffix than those that are written."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"cannot write {path}; its name must end in one of {listing(_WRITERS)}")


_READERS: dict[str, Callable[[Path], Table]] = {
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    **dict.fromkeys((".parquet", ".arrow", ".feather"), read_arrow),
    **{".npz": read_npz, ".npy": read_npy},
}
_WRITERS: dict[str, Callable[[Path, Iterator[Block], int], None]] = {
    **dict.fromkeys((".csv", ".tsv"), _write_csv),
    **dict.fromkeys((".parquet", ".arrow", ".feather"), write_arrow),
    **{".npz": write_npz, ".npy": write_npy},
}
