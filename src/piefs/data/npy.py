"""Arrays in files: `.npy`, `.npz` and Zarr, checked before any memory is allocated for them.

The header of a file may claim any size and any type. What it claims is compared with the bytes that
are there; pickled objects are never opened.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from piefs.data.files import (
    bounded_bytes,
    decoding,
    optional,
    require_few_columns,
    require_plausible,
    stored_bytes,
)
from piefs.data.table import Table, distinct, listing
from piefs.errors import InputError

NPY, ZIP = b"\x93NUMPY", b"PK"
LAST_CHARACTER = 0x10FFFF
ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
MOST_METADATA_BYTES = 2**24
COMPRESSORS = ("blosc", "lz4", "zstd", "gzip", "zlib")
CODECS = (*COMPRESSORS, "bytes", "transpose", "shuffle", "crc32c", "sharding_indexed")
FREE_CHUNKS = 1_000  # that may be missing: those hold the fill value
LEAST_CHUNK_BYTES = 16  # roughly, of a chunk that is there


# --- .npy and .npz -----------------------------------------------------------------------------


def read_npz(path: Path) -> Table:
    """The arrays of an archive as columns: `x0`, `x1`, … of a matrix `x`, `y` of a vector `y`."""
    with _opened(path, ZIP) as stream:
        arrays = load_npz(stream, path)
    columns = [pair for name in arrays for pair in _columns(name, arrays[name], path).items()]
    distinct([name for name, _ in columns], path)
    return Table(dict(columns), str(path))


def read_npy(path: Path) -> Table:
    """The columns of a matrix, named `x0`, `x1`, …"""
    array = read_array(path)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} holds {array.dtype}{list(array.shape)}; a table is a 2-D array of numbers"
        )
    return Table(_columns("x", array, path), str(path))


def read_array(path: Path) -> np.ndarray:
    """The array of an `.npy` file, of any shape."""
    with _opened(path, NPY) as stream:
        return _array(stream, path, path.stat().st_size)


def mapped(path: Path) -> np.ndarray:
    """The matrix of an `.npy` file, memory-mapped."""
    with _opened(path, NPY) as stream:
        shape, fortran_order, dtype = _header(stream, path, path.stat().st_size)
        require_matrix(path, dtype, shape)
        order = "F" if fortran_order else "C"
        return np.memmap(path, dtype, "r", stream.tell(), shape, order)


def load_npz(stream: BinaryIO, path: Path) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file by name."""
    with zipfile.ZipFile(stream) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        require_plausible(path, sum(member.file_size for member in members))
        found = {}
        for member in members:
            with archive.open(member) as content:
                name = member.filename.removesuffix(".npy")
                found[name] = _array(content, path, member.file_size)
    return found


def require_matrix(path: Path, dtype: np.dtype, shape: Sequence[int]) -> None:
    """Refuse an array that does not hold rows of numbers."""
    if len(shape) != 2 or dtype.kind not in "biuf" or not math.prod(shape):
        raise InputError(f"{path} holds {dtype}{list(shape)}; rows are a 2-D array of numbers")
    require_few_columns(path, shape[1])


@contextmanager
def _opened(path: Path, magic: bytes) -> Iterator[BinaryIO]:
    """A file that begins as it should; any error inside means damage."""
    with decoding(path), path.open("rb") as stream:
        if stream.read(len(magic)) != magic:
            raise InputError(f"{path} is not a {path.suffix} file, whatever its name says")
        stream.seek(0)
        yield stream


def _array(stream: IO[bytes], path: Path, n_bytes: int) -> np.ndarray:
    _header(stream, path, n_bytes)
    stream.seek(0)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if array.dtype.kind == "U":
        _require_unicode(array)
    return array


def _header(stream: IO[bytes], path: Path, n_bytes: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an array that claims no more bytes than there are."""
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


def _require_unicode(array: np.ndarray) -> None:
    """Refuse numbers that are no characters: Python would make broken strings of them."""
    flat = array.ravel(order="K")
    codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
    if np.any((codes > LAST_CHARACTER) | ((codes >= 0xD800) & (codes <= 0xDFFF))):
        raise ValueError("text that is no Unicode")


def _columns(name: str, array: np.ndarray, path: Path) -> dict[str, np.ndarray]:
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


# --- Zarr --------------------------------------------------------------------------------------


def is_zarr(path: Path) -> bool:
    """Whether a folder is an array or a group of Zarr, or its name says so."""
    return path.suffix.lower() == ".zarr" or any((path / mark).is_file() for mark in ZARR_MARKS)


def open_zarr(path: Path) -> Any:
    """A matrix of Zarr; its metadata are checked, and nothing is unpacked yet.

    Metadata name the codecs, and some of those run code, so only plain compressors are allowed.
    Neither the array nor one chunk of it may be far larger than the bytes in the folder.
    """
    zarr = optional("zarr", f"{path}: a Zarr array", "zarr")
    with decoding(path):
        for name in (*ZARR_MARKS, ".zattrs", ".zmetadata"):
            if (path / name).exists():
                bounded_bytes(path / name, MOST_METADATA_BYTES)
        found = zarr.open(str(path), mode="r")
        if not hasattr(found, "shape"):
            names = listing(str(path / name) for name in found.array_keys()) or "none"
            raise InputError(f"{path} is a group of arrays; give one of them: {names}")
        dtype = np.dtype(found.dtype)
        require_matrix(path, dtype, found.shape)
        unknown = [name for name in _codecs(found.metadata.to_dict()) if name not in CODECS]
        if unknown:
            raise InputError(
                f"{path} is packed by {listing(unknown)}, which is not unpacked here; write it "
                f"again, compressed by {listing(COMPRESSORS)} or not at all"
            )
        for shape in (found.shape, found.chunks, found.shards or ()):
            require_plausible(path, math.prod(shape) * dtype.itemsize)
        needed = found.nchunks * LEAST_CHUNK_BYTES
        if found.nchunks > FREE_CHUNKS and stored_bytes(path, enough=needed) < needed:
            raise InputError(
                f"{path} would have {found.nchunks:,} chunks, and most are missing; write it "
                "again in larger chunks"
            )
    return found


def _codecs(about: dict[str, Any]) -> list[str]:
    """The names of all codecs of an array, those within shards included."""
    codecs = about.get("codecs") or (*(about.get("filters") or ()), about.get("compressor"))
    names = []
    for codec in filter(None, codecs):
        names.append(str(codec.get("name", codec.get("id"))).removeprefix("numcodecs."))
        inner = codec.get("configuration") or {}
        if "index_codecs" in inner:
            names += _codecs(inner) + _codecs({"codecs": inner["index_codecs"]})
    return names
