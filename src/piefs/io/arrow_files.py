"""Parquet and Arrow files of tables, where pyarrow is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from piefs.errors import InputError
from piefs.io import atomic
from piefs.io.bounds import require_few_columns, require_plausible
from piefs.io.tables import Table, distinct

CELL_BYTES = 8


def read_arrow(path: Path) -> Table:
    """A parquet file, or an Arrow one, which `.arrow` and `.feather` both name."""
    pyarrow = _pyarrow(path)
    read = _read_parquet if path.suffix.lower() == ".parquet" else _read_feather
    try:
        content = read(path)
        require_few_columns(path, content.num_columns)
        content.validate(full=True)  # offsets that point elsewhere would be followed
        columns = [column_from_arrow(column, pyarrow.types) for column in content.columns]
    except InputError:
        raise
    except Exception as error:  # of Arrow, of its codecs, of memory: all mean the same
        if isinstance(error, OSError) and error.errno:  # the disk's, not the file's
            raise
        kind = path.suffix[1:].lower()
        raise InputError(f"{path} is not a readable {kind} file; write it anew") from error
    names = distinct(content.column_names, path)
    return Table(dict(zip(names, columns, strict=True)), str(path))


def _read_parquet(path: Path) -> Any:
    with import_module("pyarrow.parquet").ParquetFile(path) as file:
        about = file.metadata
        groups = (about.row_group(i) for i in range(about.num_row_groups))
        cells = about.num_rows * about.num_columns
        require_plausible(path, max(CELL_BYTES * cells, sum(g.total_byte_size for g in groups)))
        return file.read()


def _read_feather(path: Path) -> Any:
    return import_module("pyarrow.feather").read_table(path, memory_map=False)


def column_from_arrow(column: Any, types: Any) -> np.ndarray:
    whole_booleans = types.is_boolean(column.type) and not column.null_count
    if whole_booleans or types.is_floating(column.type) or types.is_integer(column.type):
        return column.to_numpy()
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


def _pyarrow(path: Path) -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        kind = path.suffix[1:].lower()
        raise InputError(
            f"{path}: {kind} files need pyarrow; pip install piefs[parquet]"
        ) from error


def write_arrow(path: Path, columns: dict[str, np.ndarray]) -> None:
    pyarrow = _pyarrow(path)
    content = pyarrow.table({name: pyarrow.array(cells) for name, cells in columns.items()})
    if path.suffix.lower() == ".parquet":
        write = import_module("pyarrow.parquet").write_table
    else:
        write = import_module("pyarrow.feather").write_feather
    atomic.write_with(path, lambda temporary: write(content, temporary))
