"""Rows that are read when they are needed give what an array in memory would give."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from piefs.core.model import Scaling
from piefs.data import rows as sources
from piefs.data.binary import parquet_rows
from piefs.data.rows import (
    GroupedRows,
    PickedColumns,
    ScaledRows,
    SelectedRows,
    is_lazy,
    scratch,
    spooled,
)
from piefs.errors import InputError

INDICES = [slice(3, 11), slice(None), np.array([20, 0, 7, 7]), np.arange(21) % 3 == 0, slice(5, 5)]


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(21, 3)).astype(np.float32)


@st.composite
def ways_to_ask(draw, n):
    """A slice, a mask, or row numbers in any order, from either end, some of them twice."""
    numbers = st.lists(st.integers(-n, n - 1), max_size=2 * n).map(lambda some: np.array(some, int))
    masks = st.lists(st.booleans(), min_size=n, max_size=n).map(lambda some: np.array(some, bool))
    return draw(st.one_of(st.slices(n), numbers, masks))


@given(data=st.data(), sizes=st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_rows_that_are_read_when_needed_are_indexed_as_an_array_is(data, sizes):
    n, starts = sum(sizes), np.cumsum([0, *sizes])
    whole = np.arange(2.0 * n).reshape(n, 2)
    grouped = GroupedRows(lambda i: whole[starts[i] : starts[i + 1]], starts, 2, float)
    asked = data.draw(ways_to_ask(n)) if n else slice(None)
    center, scale = np.array([1.0, 2.0]), np.array([3.0, 0.5])
    for rows, expected in (
        (grouped, whole),
        (ScaledRows(grouped, Scaling(center, scale), float), (whole - center) / scale),
        (ScaledRows(whole, Scaling(center, scale), float), (whole - center) / scale),
        (PickedColumns(grouped, [1, 0, 1]), whole[:, [1, 0, 1]]),
        (SelectedRows(grouped, np.arange(n)[::-1]), whole[::-1]),
    ):
        np.testing.assert_array_equal(rows[asked], expected[asked])


def test_the_group_read_last_is_kept(matrix):
    reads = []

    def read(i):
        reads.append(i)
        return matrix[7 * i : 7 * i + 7]

    rows = GroupedRows(read, [0, 7, 14, 21], 3, np.float32)
    for index in ([0, 20], [15], [19, 8], [14]):
        rows[np.array(index)]
    assert reads == [0, 2, 1, 2]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parquet_files_are_one_matrix(matrix, tmp_path, index):
    table = pa.table({"a": matrix[:, 0], "text": ["x"] * 21, "b": matrix[:, 1].astype(float)})
    parquet.write_table(table[:9], tmp_path / "0.parquet", row_group_size=4)
    parquet.write_table(table[9:], tmp_path / "1.parquet", row_group_size=100)
    rows = parquet_rows([tmp_path / "0.parquet", tmp_path / "1.parquet"], ["b", "a"])
    assert rows.shape == (21, 2)
    np.testing.assert_array_equal(rows[index], matrix[index][:, [1, 0]])


def test_scaled_rows_are_those_of_a_scaled_matrix(matrix, monkeypatch):
    monkeypatch.setattr(sources, "PIECE_ELEMENTS", 12)
    center, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scaled = ScaledRows(matrix, Scaling(center, scale), np.float32)
    expected = ((matrix - center.astype(float)) / scale).astype(np.float32)
    for index in INDICES:
        np.testing.assert_array_equal(
            ScaledRows(matrix, Scaling(center.astype(float), scale), np.float32)[index],
            expected[index],
        )
    assert scaled.dtype == np.float32
    assert len(scaled) == 21


def test_an_iterable_of_chunks_is_spooled(matrix):
    mapped = spooled(iter([matrix[:5], matrix[5:6], matrix[6:]]))
    np.testing.assert_array_equal(mapped, matrix)
    assert is_lazy(mapped)
    assert is_lazy(np.asarray(mapped)[2:])
    assert not is_lazy(matrix)


def test_chunks_that_do_not_fit_together_are_refused(matrix):
    with pytest.raises(InputError, match="after row 5 has shape"):
        spooled([matrix[:5], matrix[5:, :2]])
    with pytest.raises(InputError, match="no row"):
        spooled([])


def test_a_lazy_table_is_not_read_as_a_whole_by_accident(matrix):
    with pytest.raises(InputError, match="block by block"):
        np.asarray(ScaledRows(matrix, np.negative, np.float32))


def test_large_scratch_arrays_are_files():
    small, large = scratch((4, 5), np.float32), scratch((4, 5), np.float32, most_bytes=10)
    assert not is_lazy(small)
    assert is_lazy(large)
    large[2] = 7
    assert large.sum() == 35
