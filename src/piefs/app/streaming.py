"""`piefs transform` and `predict` on tables larger than memory: block by block, in and out."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from piefs.data.encoder import TableEncoder
from piefs.data.large_files import LargeTable, open_large
from piefs.data.streams import Block, check_streamable, csv_texts, write_blocks
from piefs.data.table import Table
from piefs.errors import InputError


def stream(
    data: str,
    out: Path | None,
    *,
    encoder: TableEncoder,
    id_column: str | None,
    by_position: Callable[[TableEncoder, Table], Table],
    compute: Callable[[np.ndarray], Block],
    what: str,
    quiet: bool,
) -> None:
    """What `compute` makes of the features, behind the column that names rows."""
    if out is not None:
        check_streamable(out)
    table = open_large(Path(data))
    unseen: Counter[str] = Counter()

    def blocks() -> Iterator[Block]:
        for block in table.blocks(_needed(table, encoder, id_column)):
            features = by_position(encoder, block)
            unseen.update(encoder.unseen(features))
            names = {} if id_column is None else {id_column: block.column(id_column)}
            yield names | compute(encoder.transform(features))

    shown = _with_progress(blocks(), len(table), what, quiet)
    if out is None:
        sys.stdout.writelines(csv_texts(shown))
        return
    try:
        write_blocks(out, shown, len(table))
    except OSError as error:
        raise InputError(f"cannot write to {out} ({error.strerror})") from error
    if not quiet:
        _tell(unseen, f"{len(table):,} rows of {what} are in {out}.")


def _needed(table: LargeTable, encoder: TableEncoder, id_column: str | None) -> Any:
    """The columns to read; all, where those that are needed go by other names."""
    names = [column.name for column in encoder.used]
    names += [] if id_column is None else [id_column]
    return names if set(names) <= set(table.names) else None


def _with_progress(blocks: Iterator[Block], n: int, what: str, quiet: bool) -> Iterator[Block]:
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("", total=n)
        for block in blocks:
            yield block
            progress.advance(task, len(next(iter(block.values()))))


def _tell(unseen: Counter[str], last: str) -> None:
    for name, count in unseen.items():
        print(
            f"note: {count:,} values of {name!r} were rare or unknown in training; "
            "they count as none of its categories",
            file=sys.stderr,
        )
    print(last, file=sys.stderr)
