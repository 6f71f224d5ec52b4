"""Parquet and Arrow files of tables, where pyarrow is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from piefs.errors import InputError
from piefs.io import atomic
from piefs.io.tables import Table, distinct


def read_arrow(path: Path) -> Table:
    """A parquet file, or an Arrow one, which `.arrow` and `.feather` both name."""
    pyarrow = _pyarrow(path)
    try:
        if path.suffix.lower() == ".parquet":
            content = import_module("pyarrow.parquet").ParquetFile(path).read()
        else:
            content = import_module("pyarrow.feather").read_table(path, memory_map=False)
        columns = [_from_arrow(column, pyarrow.types) for column in content.columns]
    except (pyarrow.ArrowException, ValueError) as error:
        kind = path.suffix[1:].lower()
        raise InputError(f"{path} is not a readable {kind} file; write it anew") from error
    names = distinct(content.column_names, path)
    return Table(dict(zip(names, columns, strict=True)), str(path))


def _from_arrow(column: Any, types: Any) -> np.ndarray:
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
