"""Tables written block by block, so that they may be larger than memory; whole, or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data import atomic
from piefs.data.arrow_files import pyarrow_parquet
from piefs.data.table import listing
from piefs.data.text_files import format_csv
from piefs.errors import InputError

Block = dict[str, np.ndarray]


def check_streamable(path: Path) -> None:
    """Refuse, before any work, a name whose ending says a format that cannot be appended to."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(
            f"cannot write {path} block by block; its name must end in one of {listing(_WRITERS)}"
        )


def write_blocks(path: Path, blocks: Iterable[Block], n_rows: int) -> None:
    """Blocks of the same columns, `n_rows` rows in all, as one file; the suffix says its format."""
    check_streamable(path)
    rest = iter(blocks)
    first = next(rest)
    write = _WRITERS[path.suffix.lower()]
    atomic.write_with(path, lambda temporary: write(temporary, first, rest, n_rows))


def csv_texts(blocks: Iterable[Block], delimiter: str = ",") -> Iterator[str]:
    """Comma-separated text of one block after the other, with one header."""
    for i, block in enumerate(blocks):
        text = format_csv(block, delimiter)
        yield text.split("\n", 1)[1] if i else text


def _write_csv(path: Path, first: Block, rest: Iterator[Block], n_rows: int) -> None:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_texts(chain([first], rest), delimiter))


def _write_npy(path: Path, first: Block, rest: Iterator[Block], n_rows: int) -> None:
    text = [name for name, cells in first.items() if cells.dtype.kind in "OU"]
    if text:
        raise InputError(f"{path}: .npy holds numbers only, {listing(text)} is text; use .csv")
    dtype = np.result_type(*first.values())
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (n_rows, len(first)),
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in chain([first], rest):
            file.write(np.column_stack(list(block.values())).astype(dtype).data)


def _write_parquet(path: Path, first: Block, rest: Iterator[Block], n_rows: int) -> None:
    writer = pyarrow_parquet(path).ParquetWriter
    _write_arrow_blocks(lambda schema: writer(path, schema), first, rest)


def _write_arrow(path: Path, first: Block, rest: Iterator[Block], n_rows: int) -> None:
    pyarrow_parquet(path)  # says what is missing, if it is
    new_file = import_module("pyarrow.ipc").new_file
    _write_arrow_blocks(lambda schema: new_file(str(path), schema), first, rest)


def _write_arrow_blocks(
    open_writer: Callable[[Any], Any], first: Block, rest: Iterator[Block]
) -> None:
    pyarrow = import_module("pyarrow")
    table = pyarrow.table({name: pyarrow.array(cells) for name, cells in first.items()})
    with open_writer(table.schema) as writer:
        writer.write_table(table)
        for block in rest:
            columns = [
                pyarrow.array(cells, type=field.type)
                for cells, field in zip(block.values(), table.schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=table.schema))


_WRITERS: dict[str, Callable[[Path, Block, Iterator[Block], int], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
    ".npy": _write_npy,
}
