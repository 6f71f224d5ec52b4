"""One way to open rows that stay in their files."""

import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

import piefs
from piefs.errors import InputError
from piefs.sources import is_lazy


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
        (tmp_path / "group.zarr", None, "group of arrays; give one of them"),
        (matrix, None, "in memory already"),
        ([], None, "no row"),
    ]:
        with pytest.raises(InputError, match=message):
            piefs.open_rows(source, columns)
