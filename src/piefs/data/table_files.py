"""Tables in and out: `.csv`, `.tsv`, `.parquet`, `.arrow`, `.feather`, `.npz` and `.npy`.

Whatever is wrong with a file becomes one line that names the file and says what to do. No pickle is
opened.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from piefs.data.array_files import read_npy, read_npz, write_npy, write_npz
from piefs.data.arrow_files import read_arrow, write_arrow
from piefs.data.table import Table, listing
from piefs.data.text_files import read_csv, write_csv
from piefs.errors import InputError


def read_table(path: Path) -> Table:
    """The table in a file, read according to its suffix."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give a file ({listing(_READERS)})")
        if not path.is_file():
            raise InputError(f"{path} does not exist; check the name and the folder")
        if path.suffix.lower() not in _READERS:
            kinds = listing(_READERS)
            raise InputError(f"{path}: unknown kind of file {path.suffix!r}; give one of {kinds}")
        if not path.stat().st_size:
            raise InputError(f"{path} is empty; give a file with a table")
        table = _READERS[path.suffix.lower()](path)
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory; give fewer rows or columns") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
    if not len(table):
        raise InputError(f"{path} has columns but no rows; add rows")
    return table


def write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Columns as a file, in the format that the suffix says; whole, or not there."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"cannot write {path}; its name must end in one of {listing(_WRITERS)}")
    table = Table(columns, str(path))
    # Numbers keep their own precision, so that float32 is not written with the digits of float64.
    kept = {name: cells for name, cells in columns.items() if table.columns[name].dtype != object}
    _WRITERS[path.suffix.lower()](path, table.columns | kept)


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_arrow,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".npz": read_npz,
    ".npy": read_npy,
}
_WRITERS: dict[str, Callable[[Path, dict[str, np.ndarray]], None]] = {
    ".csv": write_csv,
    ".tsv": write_csv,
    ".parquet": write_arrow,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    ".npz": write_npz,
    ".npy": write_npy,
}
