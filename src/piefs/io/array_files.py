"""numpy's files of tables: `.npz` and `.npy`."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from piefs.errors import InputError
from piefs.io import atomic
from piefs.io.tables import Table, distinct, listing


def read_npz(path: Path) -> Table:
    arrays = _arrays(path, b"PK")
    columns = [pair for name in arrays for pair in _split(name, arrays[name], path).items()]
    distinct([name for name, _ in columns], path)
    return Table(dict(columns), str(path))


def read_npy(path: Path) -> Table:
    array = _arrays(path, b"\x93NUMPY")["x"]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} holds {array.dtype}{list(array.shape)}; a table is a 2-D array of numbers"
        )
    return Table(_split("x", array, path), str(path))


def _split(name: str, array: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    """The columns of an array: its own name if it is one, `x0`, `x1`, … if there are several."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "biufUSM":
        raise InputError(
            f"{path}: array {name!r} is {array.dtype}{list(array.shape)}; "
            "give numbers or text, one row (1-D or 2-D) an example"
        )
    if array.ndim == 1 or (array.shape[1] == 1 and name.lower() != "x"):
        return {name: array.reshape(-1)}
    return {f"{name}{j}": column for j, column in enumerate(array.T)}


def _arrays(path: Path, magic: bytes) -> dict[str, np.ndarray]:
    with path.open("rb") as stream:
        if stream.read(len(magic)) != magic:
            raise InputError(f"{path} is not a {path.suffix} file, whatever its name says")
        stream.seek(0)
        try:
            content = np.load(stream, allow_pickle=False)
            return {"x": content} if isinstance(content, np.ndarray) else dict(content)
        except Exception as error:  # zip, zlib, header and memory errors: all mean the same
            if "allow_pickle" in str(error):
                raise InputError(
                    f"{path} holds pickled objects, which are never opened; "
                    "save plain arrays of numbers or text"
                ) from error
            raise InputError(f"{path} is damaged; write it anew") from error


def write_npz(path: Path, columns: dict[str, np.ndarray]) -> None:
    """As `np.savez` does, which has no room for columns called `file` or `allow_pickle`."""

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, cells in columns.items():
                array = cells.astype(str) if cells.dtype == object else cells
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)

    atomic.write_with(path, write)


def write_npy(path: Path, columns: dict[str, np.ndarray]) -> None:
    text = [name for name, cells in columns.items() if cells.dtype == object]
    if text:
        raise InputError(f"{path}: .npy holds numbers only, {listing(text)} is text; use .csv")
    stream = io.BytesIO()
    np.save(stream, np.column_stack(list(columns.values())), allow_pickle=False)
    atomic.write_bytes(path, stream.getvalue())
