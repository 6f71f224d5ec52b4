"""Tables of text, tables by suffix, and rows that stay in their files."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

import piefs
from piefs.data import readers
from piefs.data.readers import read_table
from piefs.data.rows import is_lazy
from piefs.errors import InputError


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


# --- rows that stay in their files -------------------------------------------------------------


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
