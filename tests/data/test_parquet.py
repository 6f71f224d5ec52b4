"""Parquet and Arrow files: whole, by row groups, and damaged."""

import datetime
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import piefs
from piefs.data import files
from piefs.data.readers import read_table
from piefs.errors import InputError
from tables import write_table

COLUMNS = {
    "text": np.array(["a,b", 'say "hi"', "ü"], dtype=object),
    "f": np.array([0.1, 1e300, 1 / 3]),
    "n": np.array([1, -2, 2**60]),
    "b": np.array([True, False, True]),
}


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.feather"])
def test_files_read_back_what_was_written_and_others_are_damaged(tmp_path, name):
    write_table(tmp_path / name, COLUMNS)
    table = read_table(tmp_path / name)
    assert {n: c.tolist() for n, c in table.columns.items()} == {
        n: c.tolist() for n, c in COLUMNS.items()
    }
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is damaged"):
        read_table(tmp_path / name)


def test_gaps_dates_and_categories_are_cells_of_a_table(tmp_path):
    day = datetime.date(2024, 1, 31)
    gaps = {"n": [1, None], "b": [True, None], "t": ["a", None], "d": [day, None]}
    gaps["c"] = pa.array(["u", "v"]).dictionary_encode()
    parquet.write_table(pa.table(gaps), tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet")
    np.testing.assert_array_equal(table.column("n"), [1, np.nan])
    assert table.column("b").tolist() == ["True", ""]
    assert table.column("t").tolist() == ["a", ""]
    assert table.column("d").tolist() == ["2024-01-31", ""]
    assert table.column("c").tolist() == ["u", "v"]


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
    with pytest.raises(InputError, match=r"damaged .*size 1 into shape"):
        piefs.open_rows(groups)[:]


def test_rows_that_the_bytes_could_not_hold_are_not_made_room_for(tmp_path, monkeypatch):
    parquet.write_table(pa.table({"a": np.zeros(1_000_000)}), tmp_path / "x.parquet")
    monkeypatch.setattr(files, "FREE_BYTES", 1_000_000)
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
