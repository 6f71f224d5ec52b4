"""Parquet and Arrow files of tables, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data import atomic
from piefs.data.bounds import require_few_columns, require_plausible
from piefs.data.documents import decoding
from piefs.data.table import Table, distinct, listing
from piefs.errors import InputError

CELL_BYTES = 8


def read_arrow(path: Path) -> Table:
    """A parquet file, or an Arrow one, which `.arrow` and `.feather` both name."""
    pyarrow = _pyarrow(path)
    read = _read_parquet if path.suffix.lower() == ".parquet" else _read_feather
    with decoding(path):
        content = read(path)
        require_few_columns(path, content.num_columns)
        content.validate(full=True)  # offsets that point elsewhere would be followed
        columns = [column_from_arrow(column, pyarrow.types) for column in content.columns]
    names = distinct(content.column_names, path)
    return Table(dict(zip(names, columns, strict=True)), str(path))


def pyarrow_parquet(path: Path) -> Any:
    """The module that reads Parquet."""
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(
            f"{path}: parquet files need pyarrow; pip install piefs-learn[app]"
        ) from error


@dataclass(frozen=True)
class ParquetFooter:
    """What a Parquet file says of itself: its columns, and the rows and bytes of its groups."""

    path: Path
    schema: Any
    group_rows: tuple[int, ...]
    n_bytes: int

    @property
    def n_rows(self) -> int:
        return sum(self.group_rows)


def parquet_footers(files: Sequence[Path]) -> list[ParquetFooter]:
    """The footers of files that are read block by block and hold rows at all."""
    footers = [_footer(path) for path in files]
    if not sum(footer.n_rows for footer in footers):
        raise InputError(f"{listing(map(str, files), 3)} has columns but no rows; add rows")
    return footers


def _footer(path: Path) -> ParquetFooter:
    with decoding(path), pyarrow_parquet(path).ParquetFile(path) as file:
        n_bytes, schema = _plausible_bytes(path, file.metadata), file.schema_arrow
        distinct(schema.names, path)
        if not schema.names:
            raise InputError(f"{path} has no columns; add some")
        groups = range(file.num_row_groups)
        group_rows = tuple(file.metadata.row_group(i).num_rows for i in groups)
        if min(group_rows, default=0) < 0 or sum(group_rows) != file.metadata.num_rows:
            raise ValueError("the rows of its groups do not add up")
        return ParquetFooter(path, schema, group_rows, n_bytes)


def require_rows(n_said: int, n_found: int) -> None:
    """Refuse a file whose columns do not have the rows that its footer counts."""
    if n_found != n_said:
        raise ValueError(f"{n_found} rows instead of {n_said}")


def _read_parquet(path: Path) -> Any:
    with pyarrow_parquet(path).ParquetFile(path) as file:
        _plausible_bytes(path, file.metadata)
        return file.read()


def _plausible_bytes(path: Path, about: Any) -> int:
    """What the cells of a Parquet file take once they are decoded, if its bytes could hold it."""
    require_few_columns(path, about.num_columns)
    groups = (about.row_group(i) for i in range(about.num_row_groups))
    n_bytes = sum(group.total_byte_size for group in groups)
    claimed = max(CELL_BYTES * about.num_rows * about.num_columns, n_bytes)
    require_plausible(path, claimed, "write it without compression and without dictionaries")
    return n_bytes


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
            f"{path}: {kind} files need pyarrow; pip install piefs-learn[app]"
        ) from error


def write_arrow(path: Path, columns: dict[str, np.ndarray]) -> None:
    pyarrow = _pyarrow(path)
    content = pyarrow.table({name: pyarrow.array(cells) for name, cells in columns.items()})
    if path.suffix.lower() == ".parquet":
        write = import_module("pyarrow.parquet").write_table
    else:
        write = import_module("pyarrow.feather").write_feather
    atomic.write_with(path, lambda temporary: write(content, temporary))
