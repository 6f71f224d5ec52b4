"""Zarr arrays from strangers are read if their bytes hold what they claim, or refused."""

import json
import pickle

import numcodecs
import numpy as np
import pytest
import zarr
from zarr import codecs

import piefs
from piefs.data import bounds
from piefs.errors import InputError

SHARDED = codecs.ShardingCodec(
    chunk_shape=(10, 3), codecs=[codecs.BytesCodec(), codecs.GzipCodec()], index_location="start"
)
LAYOUTS = {
    "plain": {"compressors": None},
    "zstd": {},
    "blosc": {"compressors": codecs.BloscCodec()},
    "transposed": {
        "filters": codecs.TransposeCodec(order=(1, 0)),
        "compressors": [codecs.GzipCodec(), codecs.Crc32cCodec()],
    },
    "shards": {"chunks": (10, 2), "shards": (30, 4)},
    "plain shards": {"chunks": (10, 3), "shards": (30, 3), "compressors": None},
    "index first": {"serializer": SHARDED, "compressors": None},
    "old": {"zarr_format": 2, "order": "F"},
    "old zlib": {
        "zarr_format": 2,
        "filters": numcodecs.Shuffle(4),
        "compressors": numcodecs.Zlib(),
    },
    "old lz4": {"zarr_format": 2, "compressors": numcodecs.LZ4()},
}


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(47, 3)).astype(np.float32)


@pytest.fixture
def old(matrix, tmp_path):
    """An array of version 2 in two chunks, and a way to change what it says of itself."""
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), data=matrix, chunks=(30, 3), zarr_format=2)

    def claim(**changes):
        document = json.loads((path / ".zarray").read_text())
        (path / ".zarray").write_text(json.dumps(document | changes))
        return path

    return claim


def refusal(path):
    with pytest.raises(InputError) as caught:
        piefs.open_rows(path)[:]
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_the_same_however_they_are_packed(matrix, layout, tmp_path):
    keywords = {"chunks": (30, 3)} | LAYOUTS[layout]
    zarr.create_array(str(tmp_path / "x.zarr"), data=matrix, **keywords)
    np.testing.assert_array_equal(piefs.open_rows(tmp_path / "x.zarr")[:], matrix)


def test_a_chunk_that_is_not_there_holds_the_fill_value(old, matrix):
    path = old(fill_value=7)
    (path / "1.0").unlink()
    expected = np.concatenate([matrix[:30], np.full((17, 3), 7, np.float32)])
    np.testing.assert_array_equal(piefs.open_rows(path)[:], expected)


@pytest.mark.parametrize("content", [b"", bytes(50), b"(\xb5/\xfd"], ids=["", "zeros", "cut"])
def test_a_damaged_chunk_is_said_when_its_rows_are_read(old, matrix, content):
    path = old()
    (path / "1.0").write_bytes(content)
    rows = piefs.open_rows(path)
    np.testing.assert_array_equal(rows[:30], matrix[:30])
    with pytest.raises(InputError, match=r"x\.zarr is damaged \(.*\); write it again"):
        rows[30:]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"shape": [10**15, 3]}, "would unpack to 12,000,000,000,000,000 bytes"),
        ({"shape": [10**7, 3], "chunks": [1, 3]}, "10,000,000 chunks, and most are missing"),
        ({"shape": [1, 10**8], "chunks": [1, 10**8], "dtype": "|u1"}, "100,000,000 columns"),
        ({"chunks": [10**12, 3]}, "damaged"),
        ({"chunks": [0, 3]}, "damaged"),
        ({"shape": [47]}, "damaged"),
        ({"dtype": "|O"}, "damaged"),
        ({"compressor": {"id": "nobody knows"}}, "damaged"),
        ({"compressor": {"id": "bz2"}}, "bz2 is not unpacked here; write it anew, compressed once"),
        ({"filters": [{"id": "zlib"}]}, "zlib is not unpacked here"),
        ({"filters": [{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<U9"}]}, "astype"),
        ({"dimension_separator": "/../../"}, "separator"),
        ({"order": "x\ny" * 100_000}, "damaged"),
    ],
)
def test_metadata_are_held_against_the_files(old, claims, said):
    assert said in refusal(old(**claims))


class Trap:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("dtype", ["<f4", "|O"])
def test_no_codec_runs_what_is_in_a_file(old, tmp_path, dtype, monkeypatch):
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path = old(filters=[{"id": "pickle"}], compressor=None, dtype=dtype)
    (path / "0.0").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    refusal(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["blosc", "gzip", "lz4", "zlib", "zstd"])
def test_a_chunk_that_blows_up_a_thousandfold_is_not_unpacked(old, name, monkeypatch):
    monkeypatch.setattr(bounds, "FREE_BYTES", 100_000)
    codec = numcodecs.get_codec({"id": name})
    path = old(compressor=codec.get_config())
    (path / "0.0").write_bytes(codec.encode(bytes(10_000_000)))
    assert "would unpack to" in refusal(path)


def test_a_shard_that_holds_one_chunk_many_times_is_not_unpacked(matrix, tmp_path, monkeypatch):
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), data=matrix[:40], chunks=(40, 1), shards=(40, 3))
    chunk = numcodecs.Zstd().encode(bytes(60_000))
    index = np.array([[0, len(chunk)]] * 3, "<u8").tobytes()
    (path / "c" / "0" / "0").write_bytes(chunk + index + b"sums")
    monkeypatch.setattr(bounds, "FREE_BYTES", 100_000)
    monkeypatch.setattr(bounds, "MOST_FOLD", 10)
    assert "would unpack to 120,000 bytes" in refusal(path)


@pytest.mark.parametrize("name", ["0.0", ".zarray"])
def test_a_device_in_place_of_a_file_is_not_read(old, name):
    path = old()
    (path / name).unlink()
    (path / name).symlink_to("/dev/zero")
    assert "no ordinary file" in refusal(path)


def test_a_group_whose_parts_are_damaged_is_said(tmp_path):
    zarr.create_group(str(tmp_path / "x.zarr")).create_array("part", shape=(2, 2), dtype="f4")
    (tmp_path / "x.zarr" / "part" / "zarr.json").write_text("[" * 100_000)
    refusal(tmp_path / "x.zarr")
