"""Arrays in files, `.npy`, `.npz` and Zarr, checked before any memory is allocated for them.

The header of a file may claim any size and any type. What it claims is compared with the bytes that
are there; pickled objects are never opened.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from piefs.data.files import bounded_bytes, optional, reading, require_plausible
from piefs.data.table import Block, Table, distinct, listing
from piefs.errors import InputError

MOST_COLUMNS = 1_000_000  # more names would fill the memory
ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
MOST_METADATA_BYTES = 2**24
COMPRESSORS = ("blosc", "lz4", "zstd", "gzip", "zlib")
CODECS = (*COMPRESSORS, "bytes", "transpose", "shuffle", "crc32c", "sharding_indexed")


def read_npz(path: Path) -> Table:
    """The arrays of an archive as columns: `x0`, `x1`, … of a matrix `x`, `y` of a vector `y`."""
    arrays = load_npz(path).items()
    columns = [pair for name, array in arrays for pair in _columns(name, array, path)]
    distinct([name for name, _ in columns], path)
    return Table(dict(columns), str(path))


def read_npy(path: Path) -> Table:
    """The columns of a matrix, named `x0`, `x1`, …"""
    return Table(dict(_columns("x", np.array(mapped_matrix(path)), path)), str(path))


def mapped_matrix(path: Path) -> np.ndarray:
    """The matrix of an `.npy` file, memory-mapped."""
    array = mapped(path)
    require_matrix(path, array.dtype, array.shape)
    return array


def mapped(path: Path) -> np.ndarray:
    """The array of an `.npy` file, memory-mapped, so that what its header claims is there."""
    with reading(path):
        return _with_sound_text(np.lib.format.open_memmap(path, mode="r"))


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file by name."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        require_plausible(path, sum(member.file_size for member in members))
        found = {}
        for member in members:
            with archive.open(member) as stream:
                found[member.filename.removesuffix(".npy")] = _array(stream, member.file_size)
    return found


def _array(stream: IO[bytes], n_bytes: int) -> np.ndarray:
    """An array whose header claims no more bytes than there are."""
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(stream)]
    shape, _, dtype = read_header(stream)
    if math.prod(shape) * dtype.itemsize > n_bytes:
        raise ValueError(f"a header claims more than the {n_bytes:,} bytes that are there")
    stream.seek(0)
    return _with_sound_text(np.lib.format.read_array(stream, allow_pickle=False))


def _with_sound_text(array: np.ndarray) -> np.ndarray:
    """The array, unless it holds numbers for characters that are none."""
    if array.dtype.kind == "U" and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).view(f"{array.dtype.str[0]}u4")
        if np.any(codes > 0x10FFFF) or np.any(codes >> 11 == 0x1B):  # half a character
            raise ValueError("text that is no Unicode")
    return array


def require_matrix(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Refuse an array that does not hold rows of numbers."""
    if len(shape) != 2 or dtype.kind not in "biuf" or not math.prod(shape):
        raise InputError(f"{path} holds {dtype}{list(shape)}; give a 2-D array of numbers")


def _columns(name: str, array: np.ndarray, path: Path) -> list[tuple[str, np.ndarray]]:
    """The columns of an array: its own name if it is one, `x0`, `x1`, … if there are several."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "biufUSM" or not array.size:
        raise InputError(
            f"{path}: array {name!r} is {array.dtype}{list(array.shape)}; "
            "give numbers or text, one row (1-D or 2-D) an example"
        )
    if array.ndim == 1 or (array.shape[1] == 1 and name.lower() != "x"):
        return [(name, array.reshape(-1))]
    return list(zip(numbered(name, array.shape[1], path), array.T, strict=True))


def numbered(name: str, n_columns: int, path: Path) -> list[str]:
    """The names of the columns of a matrix: `x0`, `x1`, …"""
    if n_columns > MOST_COLUMNS:
        raise InputError(f"{path} has {n_columns:,} columns; is it meant to be transposed?")
    return [f"{name}{j}" for j in range(n_columns)]


# --- writing -----------------------------------------------------------------------------------


def write_npy(path: Path, blocks: Iterator[Block], n_rows: int) -> None:
    """Blocks of columns of numbers as one matrix."""
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


def write_npz(path: Path, columns: Block) -> None:
    """As `np.savez` does, which has no room for columns called `file` or `allow_pickle`."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, cells in columns.items():
            array = cells.astype(str) if cells.dtype == object else cells
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


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
    with reading(path):
        for name in (*ZARR_MARKS, ".zattrs", ".zmetadata"):
            if (path / name).exists():
                bounded_bytes(path / name, MOST_METADATA_BYTES)
        found = zarr.open(str(path), mode="r")
        if not hasattr(found, "shape"):
            names = listing(str(path / name) for name in found.array_keys()) or "none"
            raise InputError(f"{path} is a group of arrays; give one of them: {names}")
        dtype = np.dtype(found.dtype)
        require_matrix(path, dtype, found.shape)
        if 0 in found.chunks:
            raise ValueError("its chunks are empty")
        if unknown := [name for name in _codecs(found.metadata.to_dict()) if name not in CODECS]:
            raise InputError(
                f"{path} is packed by {listing(unknown)}, which is not unpacked here; write it "
                f"again, compressed by {listing(COMPRESSORS)} or not at all"
            )
        for shape in (found.shape, found.chunks, found.shards or ()):
            require_plausible(path, math.prod(shape) * dtype.itemsize)
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
