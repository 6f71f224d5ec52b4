"""numpy's files of tables: `.npz` and `.npy`."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from piefs.data import atomic
from piefs.data.bounds import require_few_columns, require_plausible
from piefs.data.documents import decoding
from piefs.data.table import Table, distinct, listing
from piefs.errors import InputError

NPY = b"\x93NUMPY"
PIECE = 2**20
LAST_CHARACTER = 0x10FFFF


def read_npz(path: Path) -> Table:
    with _opened(path, b"PK") as stream:
        arrays = load_arrays(stream, path)
    columns = [pair for name in arrays for pair in _split(name, arrays[name], path).items()]
    distinct([name for name, _ in columns], path)
    return Table(dict(columns), str(path))


def read_array(path: Path) -> np.ndarray:
    """The array of an `.npy` file, whatever its shape."""
    with _opened(path, NPY) as stream:
        return load_arrays(stream, path)["x"]


def mapped(path: Path) -> np.ndarray:
    """The matrix of an `.npy` file, mapped."""
    with _opened(path, NPY) as stream:
        shape, fortran_order, dtype = _header(stream, path, path.stat().st_size)
        require_matrix(path, dtype, shape)
        order = "F" if fortran_order else "C"
        return np.memmap(path, dtype, "r", stream.tell(), shape, order)


def require_matrix(path: Path, dtype: np.dtype, shape: Sequence[int]) -> None:
    """Refuse an array that does not hold rows of numbers."""
    if len(shape) != 2 or dtype.kind not in "biuf" or not math.prod(shape):
        raise InputError(f"{path} holds {dtype}{list(shape)}; rows are a 2-D array of numbers")
    require_few_columns(path, shape[1])


def read_npy(path: Path) -> Table:
    array = read_array(path)
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
    if not array.size:
        raise InputError(f"{path}: array {name!r} has no rows or no columns; add some")
    if array.ndim == 1 or (array.shape[1] == 1 and name.lower() != "x"):
        return {name: array.reshape(-1)}
    require_few_columns(path, array.shape[1])
    return {f"{name}{j}": column for j, column in enumerate(array.T)}


@contextmanager
def _opened(path: Path, magic: bytes) -> Iterator[BinaryIO]:
    """A file that begins as it should; what goes wrong inside is damage."""
    with decoding(path), path.open("rb") as stream:
        if stream.read(len(magic)) != magic:
            raise InputError(f"{path} is not a {path.suffix} file, whatever its name says")
        stream.seek(0)
        yield stream


def load_arrays(stream: BinaryIO, path: Path) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file by name, or the one of an `.npy` file as `x`.

    What the headers claim is held against the bytes that are there before anything is allocated.
    """
    is_archive = stream.read(2) == b"PK"
    stream.seek(0)
    if not is_archive:
        return {"x": _array(stream, path, path.stat().st_size)}
    with zipfile.ZipFile(stream) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        require_plausible(path, sum(member.file_size for member in members))
        found = {}
        for member in members:
            with archive.open(member) as content:
                name = member.filename.removesuffix(".npy")
                found[name] = _array(content, path, member.file_size)
    return found


def _array(stream: IO[bytes], path: Path, n_bytes: int) -> np.ndarray:
    shape, fortran_order, dtype = _header(stream, path, n_bytes)
    flat = np.frombuffer(_exactly(stream, math.prod(shape) * dtype.itemsize), dtype)
    if dtype.kind == "U":
        _require_unicode(flat)
    return flat.reshape(shape[::-1]).T if fortran_order else flat.reshape(shape)


def _header(stream: IO[bytes], path: Path, n_bytes: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an array that claims as many bytes as there are, and no more."""
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"unknown version {version}")
    shape, fortran_order, dtype = read_header(stream)
    if dtype.hasobject:
        raise InputError(
            f"{path} holds pickled objects, which are never opened; "
            "save plain arrays of numbers or text"
        )
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or claimed > n_bytes:
        raise ValueError(f"the header claims {claimed:,} bytes, and {n_bytes:,} are there")
    return shape, fortran_order, dtype


def _require_unicode(flat: np.ndarray) -> None:
    """Refuse text with numbers that are no characters: Python would make broken strings of them."""
    codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
    if np.any((codes > LAST_CHARACTER) | ((codes >= 0xD800) & (codes <= 0xDFFF))):
        raise ValueError("text that is no Unicode")


def _exactly(stream: IO[bytes], n_bytes: int) -> bytearray:
    """So many bytes, read in pieces: a compressed stream would copy a whole again and again."""
    content = bytearray(n_bytes)
    view, done = memoryview(content), 0
    while done < n_bytes:
        piece = stream.read(min(PIECE, n_bytes - done))
        if not piece:
            raise ValueError("the file ends too early")
        view[done : done + len(piece)] = piece
        done += len(piece)
    return content


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
