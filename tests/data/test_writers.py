"""Tables to files: what is written reads back the same, block by block as at once."""

import numpy as np
import pytest

from piefs.data.readers import csv_texts, read_table, write_blocks, write_table
from piefs.errors import InputError

COLUMNS = {
    "file": np.array(["a,b", 'say "hi"', "ü"], dtype=object),
    "f": np.array([0.1, 1e300, 1 / 3]),
    "n": np.array([1, -2, 2**60]),
    "b": np.array([True, False, True]),
}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".CSV", ".npz", ".NPZ"])
def test_what_is_written_reads_back_the_same(tmp_path, suffix):
    path = tmp_path / "new" / f"out{suffix}"
    write_table(path, COLUMNS)
    assert list(path.parent.iterdir()) == [path]
    table = read_table(path)
    assert table.names == tuple(COLUMNS)
    for name, values in COLUMNS.items():
        back = table.column(name)
        assert back.tolist() == (
            values.tolist() if suffix.lower() == ".npz" else list(map(str, values))
        )
    np.testing.assert_array_equal(table.column("f").astype(float), COLUMNS["f"])
    assert (b"file\tf" in path.read_bytes()) == (suffix == ".tsv")


def test_npy_holds_numbers_only(tmp_path):
    write_table(tmp_path / "out.npy", {"a": np.arange(3), "b": np.ones(3)})
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), [[0, 1], [1, 1], [2, 1]])
    with pytest.raises(InputError, match=r"file is text; use \.csv"):
        write_table(tmp_path / "text.npy", COLUMNS)


def test_an_unknown_suffix_is_not_written(tmp_path):
    with pytest.raises(InputError, match=r"must end in one of \.csv"):
        write_table(tmp_path / "out.xlsx", COLUMNS)
    assert not list(tmp_path.iterdir())


def test_floats_are_written_with_the_digits_that_give_them_back_and_no_more(tmp_path):
    columns = {"f": np.array([0.1, 1 / 3]), "g": np.array([0.1, 1 / 3], np.float32)}
    text = "f,g\n0.1,0.1\n0.3333333333333333,0.33333334\n"
    assert "".join(csv_texts([columns])) == text
    write_table(tmp_path / "out.csv", columns)
    assert (tmp_path / "out.csv").read_text() == text


# --- block by block ----------------------------------------------------------------------------


@pytest.fixture
def columns(rng):
    return {"id": np.arange(10), "phi1": rng.normal(size=10).astype(np.float32)}


def blocks(columns, size=4):
    for start in range(0, 10, size):
        yield {name: cells[start : start + size] for name, cells in columns.items()}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".npy"])
def test_blocks_make_the_same_file_as_all_rows_at_once(columns, ending, tmp_path):
    write_blocks(tmp_path / f"a{ending}", blocks(columns), 10)
    write_table(tmp_path / f"b{ending}", columns)
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
def test_arrow_files_hold_all_blocks(columns, ending, tmp_path):
    from pyarrow import feather, parquet

    words = columns | {"word": np.array(list("abcdefghij"), object)}
    path = tmp_path / f"a{ending}"
    write_blocks(path, blocks(words), 10)
    read = parquet.read_table if ending == ".parquet" else feather.read_table
    found = read(path).to_pydict()
    assert found == {name: cells.tolist() for name, cells in words.items()}


def test_a_write_that_fails_leaves_nothing(columns, tmp_path):
    def failing():
        yield columns
        raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        write_blocks(tmp_path / "a.csv", failing(), 20)
    assert not list(tmp_path.iterdir())


def test_formats_that_cannot_grow_are_refused(columns, tmp_path):
    with pytest.raises(InputError, match="not written block by block"):
        write_blocks(tmp_path / "a.npz", blocks(columns), 10)
    with pytest.raises(InputError, match="numbers only"):
        write_blocks(tmp_path / "a.npy", iter([{"w": np.array(["a"], object)}]), 1)
