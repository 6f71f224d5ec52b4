"""A table written block by block is the table written at once."""

import numpy as np
import pytest

from piefs.data.streams import write_blocks
from piefs.data.table_files import write_table
from piefs.errors import InputError


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
    with pytest.raises(InputError, match="block by block"):
        write_blocks(tmp_path / "a.npz", blocks(columns), 10)
    with pytest.raises(InputError, match="numbers only"):
        write_blocks(tmp_path / "a.npy", iter([{"w": np.array(["a"], object)}]), 1)
