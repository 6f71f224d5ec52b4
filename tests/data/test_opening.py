"""One way to open rows that stay in their files."""

import io
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

import piefs
from piefs.data import bounds
from piefs.data.rows import is_lazy
from piefs.errors import InputError


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(23, 3)).astype(np.float32)


def written(matrix, kind, folder):
    if kind == "npy":
        np.save(folder / "x.npy", matrix)
        return folder / "x.npy"
    if kind == "zarr":
        array = zarr.create_array(
            str(folder / "x.zarr"), shape=matrix.shape, chunks=(5, 2), dtype="f4"
        )
        array[:] = matrix
        return folder / "x.zarr"
    if kind == "open zarr":
        return zarr.open_array(str(written(matrix, "zarr", folder)), mode="r")
    if kind == "chunks":
        return (matrix[i : i + 4] for i in range(0, 23, 4))
    (folder / "parts").mkdir()
    for i in range(2):
        part = matrix[12 * i : 12 * i + 12]
        table = pa.table({f"c{j}": part[:, j] for j in range(3)})
        parquet.write_table(table, folder / f"parts/{i}.parquet", row_group_size=5)
    return str(folder / "parts")


@pytest.mark.parametrize("kind", ["npy", "zarr", "open zarr", "chunks", "parquet"])
def test_every_kind_of_file_gives_its_rows(matrix, kind, tmp_path):
    rows = piefs.open_rows(written(matrix, kind, tmp_path))
    assert is_lazy(rows)
    assert (rows.shape, rows.dtype) == ((23, 3), np.float32)
    np.testing.assert_array_equal(rows[4:17], matrix[4:17])
    np.testing.assert_array_equal(rows[[22, 0, -1]], matrix[[22, 0, -1]])


@pytest.mark.parametrize(("kind", "columns"), [("npy", [2, 0]), ("parquet", ["c2", "c0"])])
def test_columns_are_chosen(matrix, kind, columns, tmp_path):
    rows = piefs.open_rows(written(matrix, kind, tmp_path), columns)
    np.testing.assert_array_equal(rows[:], matrix[:, [2, 0]])


def test_what_cannot_be_opened_is_said(matrix, tmp_path):
    folder = written(matrix, "parquet", tmp_path)
    written(matrix, "npy", tmp_path)
    parquet.write_table(pa.table({"a": [1.0], "word": ["x"]}), tmp_path / "words.parquet")
    zarr.create_group(str(tmp_path / "group.zarr")).create_array("x", shape=(2, 2), dtype="f4")
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    for source, columns, message in [
        (tmp_path / "none.npy", None, "does not exist"),
        (tmp_path / "one.npy", None, "2-D array of numbers"),
        (tmp_path / "table.csv", None, "cannot be read row by row"),
        (tmp_path / "words.parquet", None, "column 'word' holds string"),
        (folder, ["c7"], "no column 'c7'"),
        (folder, [0], "no column 0"),
        (tmp_path / "x.npy", [3], "no column 3; they are numbers, from 0 to 2"),
        (tmp_path / "x.npy", ["c0"], "no column 'c0'"),
        (tmp_path / "group.zarr", None, "group of arrays; give one of them"),
        (matrix, None, "in memory already"),
        ([], None, "no row"),
    ]:
        with pytest.raises(InputError, match=message):
            piefs.open_rows(source, columns)


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


def test_an_array_in_the_order_of_fortran_is_mapped(matrix, tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(matrix))
    rows = piefs.open_rows(tmp_path / "x.npy")
    assert is_lazy(rows)
    np.testing.assert_array_equal(rows, matrix)


@pytest.fixture
def groups(matrix, tmp_path):
    """A Parquet file of five groups of rows."""
    path = tmp_path / "x.parquet"
    table = pa.table({f"c{j}": matrix[:, j] for j in range(3)})
    parquet.write_table(table, path, row_group_size=5, compression="zstd", use_dictionary=False)
    return path


def test_a_file_that_is_no_parquet_is_refused_when_it_is_opened(groups):
    groups.write_bytes(groups.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"x\.parquet is damaged \(.*\); write it again"):
        piefs.open_rows(groups)


def test_a_damaged_group_is_said_when_its_rows_are_read(groups, matrix):
    with parquet.ParquetFile(groups) as file:
        at = file.metadata.row_group(4).column(1).data_page_offset
    content = bytearray(groups.read_bytes())
    content[at : at + 20] = bytes(20)
    groups.write_bytes(content)
    rows = piefs.open_rows(groups)
    np.testing.assert_array_equal(rows[:20], matrix[:20])
    with pytest.raises(InputError, match=r"x\.parquet is damaged \(.*\); write it again"):
        rows[20:]


def test_groups_that_do_not_add_up_to_all_rows_are_refused(groups, matrix):
    sound = groups.read_bytes()
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    for at in range(footer, len(sound)):
        spoiled = sound[:at] + bytes([sound[at] ^ 2]) + sound[at + 1 :]
        with suppress(pa.ArrowException, OSError):
            if parquet.read_metadata(pa.BufferReader(spoiled)).num_rows != len(matrix):
                break
    groups.write_bytes(spoiled)
    with pytest.raises(InputError, match="the rows of its groups do not add up"):
        piefs.open_rows(groups)


def test_a_column_of_one_row_does_not_stand_for_many(groups, monkeypatch):
    read = parquet.ParquetFile.read_row_group
    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", lambda *a, **k: read(*a, **k)[:1])
    with pytest.raises(InputError, match="1 rows instead of 5"):
        piefs.open_rows(groups)[:]


def test_rows_that_the_bytes_could_not_hold_are_not_made_room_for(tmp_path, monkeypatch):
    parquet.write_table(pa.table({"a": np.zeros(1_000_000)}), tmp_path / "x.parquet")
    monkeypatch.setattr(bounds, "FREE_BYTES", 1_000_000)
    with pytest.raises(InputError, match=r"would unpack to 8,000,000 bytes.*without dictionaries"):
        piefs.open_rows(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"a": pa.array([], pa.float32())}), "no rows"),
        (pa.table({}), "no columns"),
        (pa.Table.from_arrays([pa.array([1.0])] * 2, ["a", "a"]), "more than one column"),
    ],
    ids=["no rows", "no columns", "one name"],
)
def test_parquet_without_rows_or_with_one_name_twice_is_refused(table, said, tmp_path):
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match=said):
        piefs.open_rows(tmp_path / "x.parquet")


def test_folders_in_a_folder_may_be_named_as_files_are(matrix, tmp_path):
    (tmp_path / "x.parquet").mkdir()
    parquet.write_table(pa.table({"a": matrix[:, 0]}), tmp_path / "x.parquet" / "0.parquet")
    np.testing.assert_array_equal(piefs.open_rows(tmp_path)[:][:, 0], matrix[:, 0])


def test_gaps_among_yes_and_no_are_no_numbers(tmp_path):
    parquet.write_table(pa.table({"a": [True, None, False]}), tmp_path / "x.parquet")
    np.testing.assert_array_equal(piefs.open_rows(tmp_path / "x.parquet")[:], [[1], [np.nan], [0]])


def test_a_file_that_has_gone_meanwhile_is_said_to_be(groups):
    rows = piefs.open_rows(groups)
    groups.unlink()
    with pytest.raises(InputError, match=r"x\.parquet cannot be read \(.*No such file"):
        rows[:5]
