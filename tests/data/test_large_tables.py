"""A table read block by block becomes the data set that it is when read at once."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from piefs.data import large_tables as large_sets
from piefs.data import streamed as large
from piefs.data.large_tables import load_large
from piefs.data.streamed import is_to_be_streamed, open_streamed
from piefs.data.tabular import load_own
from piefs.errors import InputError

N = 240


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Numbers, words, dates, gaps, a counter and a target, in one file and in a folder of two."""
    folder, rng = tmp_path_factory.mktemp("mixed"), np.random.default_rng(0)
    price = rng.normal(size=N)
    price[7] = np.nan
    table = pa.table(
        {
            "price": price,
            "kind": rng.choice(["a", "b", "c"], N),
            "day": [f"2024-01-{1 + i % 28:02}" for i in range(N)],
            "row": np.arange(N),
            "who": [f"w{i % 40}" for i in range(N)],
            "bought": np.where(price > 0, "yes", "no"),
        }
    )
    parquet.write_table(table, folder / "whole.parquet", row_group_size=50)
    (folder / "parts").mkdir()
    parquet.write_table(table[:100], folder / "parts/0.parquet")
    parquet.write_table(table[100:], folder / "parts/1.parquet", row_group_size=30)
    return folder


@pytest.mark.parametrize("roles", [{}, {"group": "who"}, {"time": "day"}], ids=str)
def test_encoding_splits_and_rows_are_those_of_a_table_in_memory(mixed, roles, monkeypatch):
    monkeypatch.setattr(large, "BLOCK_CELLS", 200)
    roles = {"target": "bought", "missing": "impute"} | roles
    streamed = load_large(mixed / "parts", **roles)
    whole = load_own(mixed / "whole.parquet", **roles)
    assert streamed.encoder == whole.encoder
    assert streamed.task == whole.task
    for name, part in whole.dataset.splits.items():
        order = np.argsort(part.table.lines)
        found = streamed.dataset.splits[name]
        np.testing.assert_array_equal(found.x[:], part.x[order])
        np.testing.assert_array_equal(found.y, part.y[order])


def test_columns_of_very_many_rows_are_judged_by_a_sample(mixed, monkeypatch):
    monkeypatch.setattr(large, "SAMPLE_CELLS", 6 * 60)
    monkeypatch.setattr(large, "SAMPLE_RUNS", 6)
    own = load_large(mixed / "parts", target="bought", missing="impute")
    assert any("judged by 60 rows" in notice for notice in own.notices)
    kinds = {column.name: column.kind for column in own.encoder.columns}
    assert kinds == {
        "price": "number", "kind": "category", "day": "date", "row": "dropped", "who": "category"
    }  # fmt: skip


def test_few_of_many_rows_are_held_out_and_few_of_training_are_measured(mixed, monkeypatch):
    monkeypatch.setattr(large_sets, "MOST_HELD_OUT", 20)
    data = load_large(mixed / "parts", target="bought", missing="impute").dataset
    assert [len(part) for part in data.splits.values()] == [N - 40, 20, 20]
    assert len(data.in_memory.train) == 20
    assert isinstance(data.in_memory.train.x, np.ndarray)


def test_labels_may_be_a_file_of_their_own(tmp_path, rng):
    x = rng.normal(size=(N, 3))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "labels.npy", np.arange(N) % 3)
    own = load_large(tmp_path / "x.npy", target=str(tmp_path / "labels.npy"))
    assert own.dataset.class_names == ("0", "1", "2")
    assert own.dataset.target_name == "labels"
    rows = own.dataset.train.x.numbers
    np.testing.assert_array_equal(own.dataset.train.y, rows % 3)
    np.testing.assert_array_equal(own.dataset.train.x[:], x[rows])
    np.save(tmp_path / "labels.npy", np.arange(5))
    with pytest.raises(InputError, match="one label for each of the 240 rows"):
        load_large(tmp_path / "x.npy", target=str(tmp_path / "labels.npy"))


@pytest.mark.parametrize("content", [b"no array", b"\x93NUMPY\x01\x00v\x00{'descr': '|O', "])
def test_labels_that_cannot_be_read_are_an_error_that_names_the_file(tmp_path, content):
    np.save(tmp_path / "x.npy", np.zeros((N, 2)))
    (tmp_path / "labels.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"labels\.npy"):
        load_large(tmp_path / "x.npy", target=str(tmp_path / "labels.npy"))


def test_size_and_wish_decide_what_is_streamed(mixed, monkeypatch):
    file, folder = mixed / "whole.parquet", mixed / "parts"
    assert not is_to_be_streamed(file, None)
    assert is_to_be_streamed(folder, None)
    assert is_to_be_streamed(file, True)
    monkeypatch.setattr(large, "LARGE_BYTES", 100)
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


def test_yes_and_no_may_be_any_bytes(tmp_path):
    """A file may hold other bytes than 0 and 1 for them, which numpy cannot look up."""
    cells = np.arange(2 * N, dtype=np.uint8).reshape(N, 2)
    cells[::2, 1] = 0
    np.save(tmp_path / "x.npy", cells.view(bool))
    own = load_large(tmp_path / "x.npy", target="x1")
    assert own.dataset.class_names == ("False", "True")
    assert np.bincount(own.dataset.train.y).min() > 0


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
