"""Rows and tables that stay in their files."""

import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

import piefs
from piefs.data import streamed
from piefs.data.rows import is_lazy
from piefs.data.streamed import is_to_be_streamed, open_streamed
from piefs.errors import InputError


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


@pytest.mark.parametrize("sizes", [(5, 2), ((5, 6, 12), (3,)), None], ids=str)
def test_chunks_of_an_open_array_are_found(matrix, sizes):
    class Chunked:
        chunks, shape, dtype = sizes, matrix.shape, matrix.dtype
        __len__ = staticmethod(lambda: 23)
        __getitem__ = staticmethod(lambda index: matrix[index])

    rows = piefs.open_rows(Chunked())
    np.testing.assert_array_equal(rows[np.array([20, 4, 5])], matrix[[20, 4, 5]])


# --- tables ------------------------------------------------------------------------------------


def test_blocks_and_taken_rows_are_those_of_the_table(mixed, tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "BLOCK_CELLS", 100)
    np.save(tmp_path / "x.npy", np.arange(480.0).reshape(240, 2))
    rows = np.array([3, 99, 100, 239])
    for path, first in ((mixed / "parts", "price"), (tmp_path / "x.npy", "x0")):
        table = open_streamed(path)
        blocks = list(table.blocks())
        assert len(blocks) > 2
        assert np.concatenate([block.lines for block in blocks]).tolist() == [*range(1, 241)]
        np.testing.assert_array_equal(table.column(first)[rows], table.take(rows).columns[first])
        assert table.take(rows).place(1) == "row 100"


def test_size_and_wish_decide_what_is_streamed(mixed, monkeypatch):
    file, folder = mixed / "whole.parquet", mixed / "parts"
    assert not is_to_be_streamed(file, None)
    assert is_to_be_streamed(folder, None)
    assert is_to_be_streamed(file, True)
    monkeypatch.setattr(streamed, "LARGE_BYTES", 100)
    assert is_to_be_streamed(file, None)
    assert not is_to_be_streamed(file, False)
    assert not is_to_be_streamed("table.csv", None)
    with pytest.raises(InputError, match="leave --lazy out"):
        is_to_be_streamed("table.csv", True)


def test_files_of_other_columns_are_refused(mixed, tmp_path):
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"b": [1.0]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match="other columns"):
        open_streamed(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_damaged_file_is_no_matter_of_its_size(tmp_path, content):
    (tmp_path / "x.parquet").write_bytes(content)
    for read in (lambda path: is_to_be_streamed(path, None), open_streamed):
        with pytest.raises(InputError, match=r"x\.parquet is damaged"):
            read(tmp_path / "x.parquet")


def test_fewer_rows_than_a_footer_counts_are_damage(mixed, monkeypatch):
    table = open_streamed(mixed / "parts")
    batches = parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        parquet.ParquetFile, "iter_batches", lambda *a, **k: (b[1:] for b in batches(*a, **k))
    )
    with pytest.raises(InputError, match=r"0\.parquet is damaged .*99 rows instead of 100"):
        table.column("price")


def test_text_that_is_no_unicode_is_damage(tmp_path):
    ends = pa.py_buffer(np.array([0, 1, 2], np.int32))
    broken = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"\xff\xff")])
    parquet.write_table(pa.table({"word": broken}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"x\.parquet is damaged"):
        list(open_streamed(tmp_path / "x.parquet").blocks())
