"""Arrays in files: right, or refused before memory is allocated for them."""

import io
import json
import pickle

import numcodecs
import numpy as np
import pytest
import zarr
from zarr import codecs

import piefs
from piefs.data.readers import read_table
from piefs.data.rows import is_lazy
from piefs.errors import InputError


def write(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path, read=read_table):
    """The one line that a user reads about a file; it names the file."""
    with pytest.raises(InputError) as error:
        read(path)[:]
    message = str(error.value)
    assert path.name in message
    assert "\n" not in message
    return message


class Trap:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_npz_matrices_become_numbered_columns_and_vectors_keep_their_names(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    text = np.array(["u", " v ", ""])
    when = np.array(["2024-01-31", "NaT", "2024-02-01"], "M8[D]")
    path = tmp_path / "data.npz"
    np.savez(path, X=x, y=np.array([[1], [2], [3]], np.uint8), b=x[:, 0] > 1, t=text, when=when)
    table = read_table(path)
    assert table.names == ("X0", "X1", "y", "b", "t", "when")
    assert [table.columns[n].dtype for n in ("X0", "y", "b")] == [np.float64, np.int64, bool]
    np.testing.assert_array_equal(table.column("X1"), [1, 3, 5])
    assert table.column("t").tolist() == ["u", "v", ""]
    assert table.column("when").tolist() == ["2024-01-31", "", "2024-02-01"]
    assert table.place(1) == "row 2"
    np.savez(path, x=x[:, :1], z=x)
    assert read_table(path).names == ("x0", "z0", "z1")


def test_npy_is_a_matrix_of_numbers(tmp_path):
    np.save(tmp_path / "data.npy", np.eye(3))
    assert read_table(tmp_path / "data.npy").names == ("x0", "x1", "x2")
    empty = (np.zeros((3, 0)), np.zeros((0, 3)))
    for array in (np.zeros(3), np.array([["a"]]), np.zeros((2, 2), complex), *empty):
        np.save(tmp_path / "data.npy", array)
        assert "2-D array of numbers" in refusal(tmp_path / "data.npy")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.zeros((3, 2)), "y": np.zeros(2)}, "same number of rows; x0 has 3, x1 has 3, y"),
        ({"x": np.zeros((3, 2)), "x0": np.zeros(3)}, "more than one column is called 'x0'"),
        ({"x": np.zeros((3, 2, 2))}, r"'x' is float64\[3, 2, 2\]"),
        ({"x": np.zeros(3, complex)}, "'x' is complex128"),
        ({"scale": np.float64(1)}, "'scale' is float64"),
        ({}, "no columns"),
    ],
)
def test_npz_arrays_that_are_no_table_are_refused(tmp_path, arrays, said):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=said):
        read_table(path)
    refusal(path)


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_pickled_objects_are_refused_unopened(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    with path.open("wb") as stream:
        (np.savez if suffix == ".npz" else np.save)(stream, trap)
    assert "object" in refusal(path).lower()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["data.npz", "data.npy"])
def test_damaged_and_misnamed_arrays_are_refused(tmp_path, name):
    assert "is damaged" in refusal(write(tmp_path, "a,b\n1,2\n", name))
    path = tmp_path / name
    with path.open("wb") as stream:
        (np.savez if name == "data.npz" else np.save)(stream, np.arange(1000.0))
    assert "is damaged" in refusal(write(tmp_path, path.read_bytes()[:500], name))


def npy(shape, kind="<f4", n_bytes=48):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(n_bytes)


def archive():
    stream = io.BytesIO()
    np.savez(stream, x=np.zeros((4, 3)))
    return stream.getvalue()


SPOILED = {
    "nothing": b"",
    "a sum for a number": npy("(10**15, 3)"),
    "far too many rows": npy("(1000000000000000, 3)"),
    "one row too many": npy("(5, 3)"),
    "fewer rows than none": npy("(-1000000000, 3)"),
    "no rows": npy("(0, 3)"),
    "a zero in the header": npy("(4, 3)").replace(b"}", b"\x00"),
    "objects": npy("(6,)", "|O"),
    "an archive": archive(),
}


@pytest.mark.parametrize("name", SPOILED)
def test_an_array_that_is_none_is_refused(name, tmp_path):
    (tmp_path / "x.npy").write_bytes(SPOILED[name])
    with pytest.raises(InputError, match=r"x\.npy (is|holds)"):
        piefs.open_rows(tmp_path / "x.npy")


def test_an_array_in_fortran_order_is_mapped(rng, tmp_path):
    matrix = rng.normal(size=(23, 3))
    np.save(tmp_path / "x.npy", np.asfortranarray(matrix))
    rows = piefs.open_rows(tmp_path / "x.npy")
    assert is_lazy(rows)
    np.testing.assert_array_equal(rows, matrix)
    np.testing.assert_array_equal(read_table(tmp_path / "x.npy").column("x1"), matrix[:, 1])


# --- Zarr --------------------------------------------------------------------------------------


LAYOUTS = {
    "zstd": {},
    "transposed": {
        "filters": codecs.TransposeCodec(order=(1, 0)),
        "compressors": [codecs.GzipCodec(), codecs.Crc32cCodec()],
    },
    "shards": {"chunks": (10, 2), "shards": (30, 4)},
    "old": {"zarr_format": 2, "order": "F", "compressors": None},
    "old zlib": {
        "zarr_format": 2,
        "filters": numcodecs.Shuffle(4),
        "compressors": numcodecs.Zlib(),
    },
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
        ({"chunks": [10**12, 3]}, "would unpack to"),
        ({"chunks": [0, 3]}, "damaged"),
        ({"shape": [47]}, "damaged"),
        ({"dtype": "|O"}, "damaged"),
        ({"compressor": {"id": "nobody knows"}}, "damaged"),
        (
            {"compressor": {"id": "bz2"}},
            "bz2, which is not unpacked here; write it again, compressed by",
        ),
        ({"filters": [{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<U9"}]}, "astype"),
        ({"dimension_separator": "/../../"}, "separator"),
        ({"order": "x\ny" * 100_000}, "damaged"),
    ],
)
def test_metadata_are_held_against_the_files(old, claims, said):
    assert said in refusal(old(**claims), piefs.open_rows)


@pytest.mark.parametrize("dtype", ["<f4", "|O"])
def test_no_codec_runs_what_is_in_a_file(old, tmp_path, dtype, monkeypatch):
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path = old(filters=[{"id": "pickle"}], compressor=None, dtype=dtype)
    (path / "0.0").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    refusal(path, piefs.open_rows)
    assert not (tmp_path / "sprung").exists()


def test_metadata_that_are_a_device_are_not_read(old):
    path = old()
    (path / ".zarray").unlink()
    (path / ".zarray").symlink_to("/dev/zero")
    assert "no ordinary file" in refusal(path, piefs.open_rows)


def test_a_group_whose_parts_are_damaged_is_said(tmp_path):
    zarr.create_group(str(tmp_path / "x.zarr")).create_array("part", shape=(2, 2), dtype="f4")
    (tmp_path / "x.zarr" / "part" / "zarr.json").write_text("[" * 100_000)
    refusal(tmp_path / "x.zarr", piefs.open_rows)
