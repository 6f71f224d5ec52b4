"""Tables of text, tables by suffix, and tables that are written block by block."""

import subprocess
import sys

import numpy as np
import pytest

from piefs.data import readers
from piefs.data.readers import csv_texts, read_table, write_blocks
from piefs.errors import InputError
from tables import write_table


def write(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path):
    """The one line that a user reads about a file; it names the file."""
    with pytest.raises(InputError) as error:
        read_table(path)
    message = str(error.value)
    assert path.name in message
    assert "\n" not in message
    return message


def cells(table):
    return {name: column.tolist() for name, column in table.columns.items()}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiter_is_found_and_cells_stay_text_without_their_margins(tmp_path, delimiter):
    lines = [["a", " b "], [" 1", "x y "], ["", "2024-01-31"]]
    path = write(tmp_path, "\n".join(map(delimiter.join, lines)))
    assert cells(read_table(path)) == {"a": ["1", ""], "b": ["x y", "2024-01-31"]}


def test_delimiter_is_the_one_that_all_lines_agree_on(tmp_path):
    path = write(tmp_path, "weight, kg;height, cm\n1;2\n3;4\n")
    assert read_table(path).names == ("weight, kg", "height, cm")


def test_quoted_cells_hold_delimiters_quotes_and_line_ends(tmp_path):
    path = write(tmp_path, 'a,b\r\n"x, y", "say ""hi"""\r\n"two\r\nlines",2\r\n3,4\r\n')
    table = read_table(path)
    assert cells(table) == {"a": ["x, y", "two\r\nlines", "3"], "b": ['say "hi"', "2", "4"]}
    assert [table.place(row) for row in range(3)] == ["line 2", "line 3", "line 5"]


def test_blank_lines_are_skipped_and_byte_order_marks_are_no_part_of_a_name(tmp_path):
    table = read_table(write(tmp_path, b"\xef\xbb\xbf\na,b\n\n1,2\n   \n3,4\n\n"))
    assert cells(table) == {"a": ["1", "3"], "b": ["2", "4"]}
    assert table.place(1) == "line 6"


def test_a_line_of_empty_cells_is_a_row(tmp_path):
    assert cells(read_table(write(tmp_path, "a,b\n1,2\n,\n"))) == {"a": ["1", ""], "b": ["2", ""]}


def test_lines_may_end_as_on_any_system(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        path = write(tmp_path, end.join(["a,b", "1,2", "3,4"]))
        assert cells(read_table(path)) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_commas_are_decimal_where_semicolons_separate(tmp_path):
    table = read_table(write(tmp_path, "a;b;c\n1,5;-2,5e3;x, y\n,25;7;1,2,3\n"))
    assert cells(table) == {"a": ["1.5", ".25"], "b": ["-2.5e3", "7"], "c": ["x, y", "1,2,3"]}


def test_a_first_column_without_name_is_the_index_that_pandas_writes(tmp_path):
    assert read_table(write(tmp_path, ",a\n0,5\n1,6\n")).names == ("index", "a")


def test_names_that_count_are_names(tmp_path):
    assert read_table(write(tmp_path, "0,1,2\n5,6,7\n")).names == ("0", "1", "2")
    assert read_table(write(tmp_path, ",0,1\n0,5,6\n")).names == ("index", "0", "1")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no column names"),
        (b" \n\n", "no column names"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n1,2,3\n", r"line 3: expected 2 values .* found 3; correct"),
        (b'a,b\n"1\n1",2\n1\n', r"line 4: expected 2 values .* found 1"),
        (b"a,b,a\n1,2,3\n", "more than one column is called 'a'; rename"),
        (b"a,,c\n1,2,3\n", "column 2 has no name; name it"),
        (b"1.5,2,x\n1,2,3\n", None),
        (b"1.5,2,3\n1,2,3\n", "no header; add a first line"),
        (b'a,b\n1,"2\n3,4\n', "line 2: .* quotes"),
        (b'a,b\n1,2\n"3"3,4\n', "line 3: .* quotes"),
        (b"a,b\n1," + b"x" * 200_000 + b"\n", "line 2: field larger than .* quotes"),
        (b"a\n\x00\x01\x02PK", "line 2: not UTF-8 text; save"),
        ("a,b\nä,1\n".encode("utf-16"), "line 1: not UTF-8 text; save"),
        ("a,b\n1,1\nä,1\n".encode("latin-1"), "line 3: not UTF-8"),
    ],
)
def test_a_csv_file_that_is_no_table_is_refused_with_the_place_and_the_remedy(
    tmp_path, content, said
):
    path = write(tmp_path, content)
    if said is None:  # a name among the numbers makes the line a header
        assert read_table(path).names == ("1.5", "2", "x")
    else:
        with pytest.raises(InputError, match=said):
            read_table(path)
        refusal(path)


def test_what_is_not_there_or_not_a_table_is_refused(tmp_path):
    assert "does not exist" in refusal(tmp_path / "data.csv")
    assert "is not a table; give one of .csv" in refusal(tmp_path)
    assert ".parquet" in refusal(write(tmp_path, "a", "data.xlsx"))
    assert "is damaged" in refusal(write(tmp_path, b"", "data.npz"))


def test_a_failure_to_read_is_an_input_error(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setitem(readers._READERS, ".csv", fail)
    assert "cannot be read (Input/output error)" in refusal(write(tmp_path, "a\n1\n"))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_without_pyarrow_an_error_says_what_to_install(tmp_path, monkeypatch, suffix):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(tmp_path, "a,b\n1,2\n", f"data{suffix}")
    assert "needs the package pyarrow: pip install 'piefs-learn[app]'" in refusal(path)


def test_tables_of_numbers_are_read_without_jax_pandas_and_pyarrow(tmp_path):
    path = write(tmp_path, "a,b\n1,2\n")
    code = (
        "import sys; from piefs.data.readers import read_table; import piefs.data.tabular;"
        f"read_table({str(path)!r});"
        "sys.exit(bool({'jax', 'pandas', 'pyarrow', 'requests', 'zarr'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- writing -----------------------------------------------------------------------------------


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


def test_an_archive_holds_all_blocks_of_a_column_in_one_array(columns, tmp_path):
    write_blocks(tmp_path / "a.npz", blocks(columns), 10)
    with np.load(tmp_path / "a.npz") as found:
        assert found.files == list(columns)
        for name, cells in columns.items():
            np.testing.assert_array_equal(found[name], cells, strict=True)


def test_text_is_refused_in_a_matrix_of_blocks(tmp_path):
    with pytest.raises(InputError, match="numbers only"):
        write_blocks(tmp_path / "a.npy", iter([{"w": np.array(["a"], object)}]), 1)
