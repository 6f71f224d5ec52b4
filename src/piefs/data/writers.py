"""Tables to files, at once or block by block, so that they may be larger than memory.

A file is written whole, or it is not there.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from piefs.data import files
from piefs.data.parquet import Block, write_arrow
from piefs.data.table import Table, listing
from piefs.errors import InputError


def write_table(path: Path, columns: Block) -> None:
    """Columns as a file, in the format of its suffix."""
    table = Table(columns, str(path))
    # Numbers keep their own precision, so that float32 is not written with the digits of float64.
    kept = {name: cells for name, cells in columns.items() if table.columns[name].dtype != object}
    if path.suffix.lower() == ".npz":
        files.write_with(path, lambda temporary: _write_npz(temporary, table.columns | kept))
    else:
        write_blocks(path, [table.columns | kept], len(table))


def check_streamable(path: Path) -> None:
    """Refuse, before any work, a suffix whose format cannot grow block by block."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(
            f"cannot write {path}; its name must end in one of {listing(_WRITERS)} (or .npz, for "
            "tables that are not written block by block)"
        )


def write_blocks(path: Path, blocks: Iterable[Block], n_rows: int) -> None:
    """Blocks of the same columns, `n_rows` rows in all, as one file in the format of its suffix."""
    check_streamable(path)
    write = _WRITERS[path.suffix.lower()]
    files.write_with(path, lambda temporary: write(temporary, iter(blocks), n_rows))


def format_csv(columns: Block, delimiter: str = ",") -> str:
    """Columns as comma-separated text; each float has the digits that give it back, no more."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    # Python's own numbers print fastest; those narrower than 64 bits would gain digits on the way.
    plain = (cells.tolist() if cells.dtype.itemsize == 8 else cells for cells in columns.values())
    writer.writerows(zip(*(map(str, cells) for cells in plain), strict=True))
    return stream.getvalue()


def csv_texts(blocks: Iterable[Block], delimiter: str = ",") -> Iterator[str]:
    """Comma-separated text of one block after the other, with one header."""
    for i, block in enumerate(blocks):
        text = format_csv(block, delimiter)
        yield text.split("\n", 1)[1] if i else text


def _write_csv(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_texts(blocks, delimiter))


def _write_npy(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    first = next(blocks)
    if text := [name for name, cells in first.items() if cells.dtype.kind in "OU"]:
        raise InputError(f"{path}: .npy holds numbers only, {listing(text)} is text; use .csv")
    dtype = np.result_type(*first.values())
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": (n_rows, len(first))}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in chain([first], blocks):
            file.write(np.column_stack(list(block.values())).astype(dtype).data)


def _write_npz(path: Path, columns: Block) -> None:
    """As `np.savez` does, which has no room for columns called `file` or `allow_pickle`."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, cells in columns.items():
            array = cells.astype(str) if cells.dtype == object else cells
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


_WRITERS: dict[str, Callable[[Path, Iterator[Block], int], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_csv,
    ".parquet": write_arrow,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    ".npy": _write_npy,
}
