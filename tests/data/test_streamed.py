"""Tables that are read block by block."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from piefs.data import streamed
from piefs.data.streamed import is_to_be_streamed, open_streamed
from piefs.errors import InputError


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
