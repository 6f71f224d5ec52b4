"""How much compressed bytes unpack to, told before they are unpacked."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator

PIECE = 2**16
ZSTD_FRAME = b"\x28\xb5\x2f\xfd"
ZSTD_BLOCK = 2**17  # at most


def unpacked_bytes(compressor: str, content: bytes, most: float) -> int:
    """What a chunk of Zarr claims to unpack to, or at most can; some more than `most` is enough."""
    if compressor in STREAMS:
        return _counted(STREAMS[compressor](content), most)
    return HEADERS[compressor](content)


def _of_blosc(content: bytes) -> int:
    if len(content) < max(16, int.from_bytes(content[12:16], "little")):
        raise ValueError("a chunk of blosc is cut")  # whose end blosc would not look for
    return int.from_bytes(content[4:8], "little")


def _of_lz4(content: bytes) -> int:
    return int.from_bytes(content[:4], "little")


def _of_zstd(content: bytes) -> int:
    """The sum over frames, which say it or are counted by their blocks."""
    total = at = 0
    while at < len(content):
        if content[at : at + 4] != ZSTD_FRAME:
            raise ValueError("no frame of zstd")
        flags = content[at + 4]
        is_single = flags >> 5 & 1
        at += 6 - is_single + (0, 1, 2, 4)[flags & 3]
        width = (is_single, 2, 4, 8)[flags >> 6]
        claimed = int.from_bytes(content[at : at + width], "little") + 256 * (width == 2)
        counted, at = _zstd_blocks(content, at + width)
        at += 4 * (flags >> 2 & 1)
        total += claimed if width else counted
    return total


def _zstd_blocks(content: bytes, at: int) -> tuple[int, int]:
    """What the blocks of a frame unpack to at most, and where they end."""
    total, is_last = 0, False
    while not is_last:
        if at + 3 > len(content):
            raise ValueError("a frame of zstd is cut")
        header = int.from_bytes(content[at : at + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        total += size if kind < 2 else ZSTD_BLOCK
        at += 3 + (1 if kind == 1 else size)  # of one byte repeated, or as many as there are
    return total, at


def _gunzipped(content: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        yield from iter(lambda: file.read(PIECE), b"")


def _inflated(content: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    for start in range(0, len(content), PIECE):
        rest = content[start : start + PIECE]
        while rest and not stream.eof:
            yield stream.decompress(rest, PIECE)
            rest = stream.unconsumed_tail


def _counted(pieces: Iterable[bytes], most: float) -> int:
    n = 0
    for piece in pieces:
        n += len(piece)
        if n > most:
            break
    return n


HEADERS: dict[str, Callable[[bytes], int]] = {
    "blosc": _of_blosc,
    "lz4": _of_lz4,
    "zstd": _of_zstd,
}
STREAMS: dict[str, Callable[[bytes], Iterator[bytes]]] = {"gzip": _gunzipped, "zlib": _inflated}
COMPRESSORS = (*HEADERS, *STREAMS)
