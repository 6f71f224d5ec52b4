"""What compressed bytes unpack to is known before they are unpacked."""

import numcodecs
import numpy as np
import pyarrow as pa
import pytest

from piefs.data import unpacking
from piefs.data.unpacking import unpacked_bytes

CODECS = {
    "blosc": numcodecs.Blosc(),
    "gzip": numcodecs.GZip(),
    "lz4": numcodecs.LZ4(),
    "zlib": numcodecs.Zlib(),
    "zstd": numcodecs.Zstd(checksum=True),
}
SIZES = [1, 255, 256, 70_000, 300_000]


def numbers(n_bytes):
    return np.random.default_rng(0).integers(0, 9, n_bytes, np.uint8).tobytes()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CODECS)
def test_sizes_are_those_of_the_content(name, size):
    assert unpacked_bytes(name, CODECS[name].encode(numbers(size)), 10**9) == size


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_several_streams_in_a_row_are_added_up(name):
    content = b"".join(CODECS[name].encode(numbers(size)) for size in SIZES)
    assert unpacked_bytes(name, content, 10**9) == len(CODECS[name].decode(content)) == sum(SIZES)


@pytest.mark.parametrize("name", ["gzip", "zlib"])
def test_counting_ends_where_it_is_too_much(name):
    content = CODECS[name].encode(bytes(10_000_000))
    assert 200_000 < unpacked_bytes(name, content, 200_000) <= 200_000 + unpacking.PIECE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("content", [numbers, bytes], ids=["numbers", "zeros"])
def test_zstd_that_does_not_say_its_size_is_bounded_by_its_blocks(size, content):
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as file:
        file.write(content(size))
    found = unpacked_bytes("zstd", stream.getvalue().to_pybytes(), 10**9)
    assert size <= found < size + 2**17


@pytest.mark.parametrize(
    ("name", "at"), [("zstd", 3), ("zstd", 4), ("zstd", 5), ("blosc", 3), ("blosc", 100)]
)
def test_what_is_cut_is_an_error(name, at):
    with pytest.raises((ValueError, IndexError)):
        unpacked_bytes(name, CODECS[name].encode(numbers(300))[:at], 10**9)
