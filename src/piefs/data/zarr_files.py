"""Zarr arrays, held against their bytes before zarr unpacks them.

A codec is named by a file's metadata, and some run code or make much of little. So only those are
allowed that turn bytes into numbers and tell how many; each chunk is asked before it is unpacked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.array_files import require_matrix
from piefs.data.bounds import most_bytes, require_plausible, stored_bytes
from piefs.data.documents import bounded_bytes, decoding
from piefs.data.table import listing
from piefs.data.unpacking import COMPRESSORS, unpacked_bytes
from piefs.errors import InputError

MARKS = ("zarr.json", ".zarray", ".zgroup")
MOST_METADATA_BYTES = 2**24
SIZE_KEEPING = ("bytes", "transpose", "shuffle", "crc32c")
CHECKSUM_BYTES, PLACE_BYTES = 4, 16
FREE_CHUNKS = 1_000  # that need not be there: those which are missing hold the fill value
LEAST_CHUNK_BYTES = 16  # of a chunk that is there, about


def is_zarr(path: Path) -> bool:
    """Whether a folder is an array or a group of Zarr, or a name says so."""
    return path.suffix.lower() == ".zarr" or any((path / mark).is_file() for mark in MARKS)


class ZarrMatrix:
    """A matrix of Zarr, which gives slices of rows whose chunks unpack to what they should."""

    def __init__(self, path: Path) -> None:
        self.path, self.array = path, _opened(path)
        with decoding(path):
            self.shape, self.dtype = tuple(self.array.shape), np.dtype(self.array.dtype)
            require_matrix(path, self.dtype, self.shape)
            require_plausible(path, math.prod(self.shape) * self.dtype.itemsize)
            self.chunks = tuple(self.array.chunks)
            self.file_shape = self.array.shards or self.chunks
            self.packing = _Packing(path, self.array.metadata, self.file_shape)
            self._require_few_chunks()

    def _require_few_chunks(self) -> None:
        """Refuse an array of very many chunks of which hardly any are there."""
        n_chunks = math.prod(_ceil(n, k) for n, k in zip(self.shape, self.chunks, strict=True))
        needed = n_chunks * LEAST_CHUNK_BYTES
        if n_chunks > FREE_CHUNKS and stored_bytes(self.path, enough=needed) < needed:
            raise InputError(
                f"{self.path} would have {n_chunks:,} chunks, and most are missing; write it anew "
                "in larger chunks"
            )

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        with decoding(self.path):
            self._require_bounded(start, stop)
            return np.asarray(self.array[start:stop])

    def _require_bounded(self, start: int, stop: int) -> None:
        """Refuse chunks that would unpack to far more than they hold."""
        chunks, n_stored, n_bytes = [], 0, 0
        for file, first, last in self._files(start, stop):
            if not file.is_file():
                raise ValueError(f"{file.name} is no ordinary file")
            places = self.packing.places(file, first, last)
            chunks += [(file, *place) for place in places]
            n_stored += min(file.stat().st_size, sum(length for _, length in places))
        for file, offset, length in chunks:
            with file.open("rb") as stream:
                stream.seek(offset)
                content = stream.read(length)
            n_bytes += self.packing.unpacked_bytes(content, most_bytes(n_stored))
            require_plausible(file, n_bytes, n_stored=n_stored)

    def _files(self, start: int, stop: int) -> Iterator[tuple[Path, int, int]]:
        """The files that hold some rows, where they are there, and which of their own rows."""
        n_rows, n_columns = self.file_shape
        for i in range(start // n_rows, _ceil(stop, n_rows)):
            first, last = max(start - i * n_rows, 0), min(stop - i * n_rows, n_rows)
            for j in range(_ceil(self.shape[1], n_columns)):
                file = self.path / self.array.metadata.encode_chunk_key((i, j))
                if file.exists():
                    yield file, first, last


def _ceil(n: int, k: int) -> int:
    return -(-n // k)


def _opened(path: Path) -> Any:
    """The array as zarr opens it, which reads its metadata and no more."""
    try:
        zarr = import_module("zarr")
    except ImportError as error:
        raise InputError(f"{path}: Zarr arrays need zarr; pip install piefs-learn[zarr]") from error
    with decoding(path):
        for name in (*MARKS, ".zattrs", ".zmetadata"):
            if (path / name).exists():
                bounded_bytes(path / name, MOST_METADATA_BYTES)
        found = zarr.open(str(path), mode="r")
        if not hasattr(found, "shape"):
            names = listing(str(path / name) for name in found.array_keys()) or "none"
            raise InputError(f"{path} is a group of arrays; give one of them: {names}")
        return found


class _Packing:
    """How the chunks of an array are packed: by which compressor, and where they are in a file."""

    def __init__(self, path: Path, metadata: Any, file_shape: Sequence[int]) -> None:
        about = metadata.to_dict()
        codecs = about["codecs"] if "codecs" in about else _old_codecs(about)
        self.grid = None
        if [_name(codec) for codec in codecs] == ["sharding_indexed"]:
            shard = codecs[0]["configuration"]
            codecs, self.chunk_rows = shard["codecs"], shard["chunk_shape"][0]
            pairs = zip(file_shape, shard["chunk_shape"], strict=True)
            self.grid = tuple(n // k for n, k in pairs)
            self.index_first = shard["index_location"] == "start"
            self.index_bytes = PLACE_BYTES * math.prod(self.grid)
            self.index_bytes += _checksum_bytes(path, shard["index_codecs"])
        self.compressor, self.n_behind = _compressor(path, [_name(codec) for codec in codecs])

    def places(self, file: Path, first: int, last: int) -> list[tuple[int, int]]:
        """Offsets and lengths of the compressed chunks that hold some rows of a file."""
        size = file.stat().st_size
        if self.compressor is None:
            return []
        if self.grid is None:
            return [(0, size)]
        at = 0 if self.index_first else size - self.index_bytes
        if at < 0:
            raise ValueError("a shard is shorter than its index")
        with file.open("rb") as stream:
            stream.seek(at)
            content = stream.read(PLACE_BYTES * math.prod(self.grid))
        index = np.frombuffer(content, "<u8").reshape(*self.grid, 2)
        chosen = index[first // self.chunk_rows : _ceil(last, self.chunk_rows)].reshape(-1, 2)
        return [(at, min(length, size - at)) for at, length in chosen.tolist() if at < size]

    def unpacked_bytes(self, content: bytes, most: float) -> int:
        """What a compressed chunk claims to unpack to."""
        assert self.compressor is not None
        return unpacked_bytes(self.compressor, content[: len(content) - self.n_behind], most)


def _old_codecs(about: dict[str, Any]) -> list[Any]:
    """The codecs of an array of version 2, in the order in which it was packed."""
    return [codec for codec in (*(about["filters"] or ()), about["compressor"]) if codec]


def _name(codec: dict[str, Any]) -> str:
    return str(codec.get("name", codec.get("id"))).removeprefix("numcodecs.")


def _checksum_bytes(path: Path, index_codecs: Sequence[Any]) -> int:
    """What follows the numbers in the index of a shard."""
    names = [_name(codec) for codec in index_codecs]
    order = index_codecs[0].get("configuration", {}).get("endian")
    if names not in (["bytes"], ["bytes", "crc32c"]) or order != "little":
        raise InputError(f"{path} has shards with an unusual index; write it anew without shards")
    return CHECKSUM_BYTES * (len(names) - 1)


def _compressor(path: Path, names: list[str]) -> tuple[str | None, int]:
    """The compressor among codecs that are allowed, and how many bytes follow what it wrote."""
    before = list(names)
    n_behind = CHECKSUM_BYTES if before and before[-1] == "crc32c" else 0
    if n_behind:
        before.pop()
    compressor = before.pop() if before and before[-1] in COMPRESSORS else None
    unknown = [name for name in before if name not in SIZE_KEEPING]
    if unknown:
        raise InputError(
            f"{path} is packed by {listing(names)}, and {listing(unknown)} is not unpacked here; "
            f"write it anew, compressed once by {listing(COMPRESSORS)} or not at all"
        )
    return compressor, n_behind
