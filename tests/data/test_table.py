"""Tables in and out, and what is said about files that are not what their names say."""

import os
import subprocess
import sys

import numpy as np
import pytest

from piefs.data import table_files as files
from piefs.data.table import Table
from piefs.data.table_files import read_table, write_table
from piefs.data.text_files import format_csv
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
        (b"", "is empty"),
        (b" \n\n", "no column names"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n1,2,3\n", r"line 3: expected 2 values .* found 3; correct"),
        (b'a,b\n"1\n1",2\n1\n', r"line 4: expected 2 values .* found 1"),
        (b"a,b,a\n1,2,3\n", "more than one column is called 'a'; rename"),
        (b"a,,c\n1,2,3\n", "column 2 has no name; name it"),
        (b"1.5,2,x\n1,2,3\n", None),
        (b"1.5,2,3\n1,2,3\n", "no header; add a first line"),
        (b'a,b\n1,"2\n3,4\n', "line 2: .* quotes"),
        (b'a,b\n1,"' + b"x" * 200_000 + b'"\n', "line 2: field larger"),
        (b"\x00\x01\x02PK", "not a text file.* UTF-8"),
        ("a,b\nä,1\n".encode("utf-16"), "not a text file.* UTF-8"),
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
    assert "is a folder" in refusal(tmp_path)
    assert ".parquet" in refusal(write(tmp_path, "a", "data.xlsx"))
    assert "'.xlsx'" in refusal(tmp_path / "data.xlsx")
    assert "is empty" in refusal(write(tmp_path, b"", "data.npz"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all files")
def test_a_file_without_permission_is_refused(tmp_path):
    path = write(tmp_path, "a\n1\n")
    path.chmod(0)
    assert "cannot be read" in refusal(path)


def test_a_failure_to_read_is_an_input_error(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setitem(files._READERS, ".csv", fail)
    assert "cannot be read (Input/output error)" in refusal(write(tmp_path, "a\n1\n"))


def test_npz_matrices_become_numbered_columns_and_vectors_keep_their_names(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    text = np.array(["u", " v ", ""])
    when = np.array(["2024-01-31", "NaT", "2024-02-01"], "M8[D]")
    path = tmp_path / "data.npz"
    np.savez(path, X=x, y=np.array([[1], [2], [3]], np.uint8), b=x[:, 0] > 1, t=text, when=when)
    table = read_table(path)
    assert table.names == ("X0", "X1", "y", "b", "t", "when")
    assert [table.columns[n].dtype for n in ("X0", "y", "b")] == [np.float64, np.int64, bool]
    np.testing.assert_array_equal(table.column("X1"), [1, 3, 5])
    assert table.column("t").tolist() == ["u", "v", ""]
    assert table.column("when").tolist() == ["2024-01-31", "", "2024-02-01"]
    assert table.place(1) == "row 2"
    np.savez(path, x=x[:, :1], z=x)
    assert read_table(path).names == ("x0", "z0", "z1")


def test_npy_is_a_matrix_of_numbers(tmp_path):
    np.save(tmp_path / "data.npy", np.eye(3))
    assert read_table(tmp_path / "data.npy").names == ("x0", "x1", "x2")
    for array in (np.zeros(3), np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros((2, 2), complex)):
        np.save(tmp_path / "data.npy", array)
        assert "2-D array of numbers" in refusal(tmp_path / "data.npy")
    np.save(tmp_path / "data.npy", np.zeros((3, 0)))
    assert "no columns" in refusal(tmp_path / "data.npy")
    np.save(tmp_path / "data.npy", np.zeros((0, 3)))
    assert "no rows" in refusal(tmp_path / "data.npy")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.zeros((3, 2)), "y": np.zeros(2)}, "same number of rows; x0 has 3, x1 has 3, y"),
        ({"x": np.zeros((3, 2)), "x0": np.zeros(3)}, "more than one column is called 'x0'"),
        ({"x": np.zeros((3, 2, 2))}, r"'x' is float64\[3, 2, 2\]"),
        ({"x": np.zeros(3, complex)}, "'x' is complex128"),
        ({"scale": np.float64(1)}, "'scale' is float64"),
        ({}, "no columns"),
    ],
)
def test_npz_arrays_that_are_no_table_are_refused(tmp_path, arrays, said):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=said):
        read_table(path)
    refusal(path)


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_pickled_objects_are_refused_unopened(tmp_path, suffix):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "executed"),))

    path = tmp_path / f"data{suffix}"
    with path.open("wb") as stream:
        (np.savez if suffix == ".npz" else np.save)(stream, np.array([Trap()], dtype=object))
    assert "pickled objects" in refusal(path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", ["data.npz", "data.npy"])
def test_damaged_and_misnamed_arrays_are_refused(tmp_path, name):
    assert "is not a" in refusal(write(tmp_path, "a,b\n1,2\n", name))
    path = tmp_path / name
    with path.open("wb") as stream:
        (np.savez if name == "data.npz" else np.save)(stream, np.arange(1000.0))
    assert "is damaged" in refusal(write(tmp_path, path.read_bytes()[:500], name))


def test_an_unknown_column_is_answered_with_its_likeness_and_all_names():
    table = Table({"Age": np.arange(3), "height": np.arange(3)}, "people.csv")
    with pytest.raises(InputError, match=r"people.csv has no column 'age'.*'Age'.*Age, height"):
        table.column("age")
    many = Table({f"x{i}": np.arange(3) for i in range(784)})
    with pytest.raises(InputError, match=r"'target'; its columns are x0, .* x19 and 764 more$"):
        many.column("target")


def test_columns_of_unequal_length_or_strange_type_are_refused():
    with pytest.raises(InputError, match="a has 3, b has 2"):
        Table({"a": np.arange(3), "b": np.arange(2)})
    with pytest.raises(InputError, match=r"\[2, 2\]"):
        Table({"a": np.eye(2)})
    with pytest.raises(InputError, match="complex"):
        Table({"a": np.zeros(2, complex)})


def test_rows_taken_remember_their_lines(tmp_path):
    table = read_table(write(tmp_path, "a,b\n1,2\n3,4\n5,6\n")).without(["b"])
    part = table.take(np.array([2, 0]))
    assert len(part) == 2
    assert cells(part) == {"a": ["5", "1"]}
    assert part.place(0) == "line 4"


def test_objects_become_text_and_large_unsigned_integers_do_not_turn_negative():
    values = np.array([None, 1.5, b" b ", np.nan, "c "], dtype=object)
    assert Table({"a": values}).column("a").tolist() == ["", "1.5", "b", "nan", "c"]
    assert Table({"a": np.array([2**64 - 1], np.uint64)}).column("a")[0] > 0


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


def test_parquet_reads_back_what_was_written(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "out.parquet"
    write_table(path, COLUMNS)
    assert cells(read_table(path)) == {name: v.tolist() for name, v in COLUMNS.items()}
    import datetime

    day = datetime.date(2024, 1, 31)
    gaps = {"n": [1, None], "b": [True, None], "t": ["a", None], "d": [day, None]}
    parquet.write_table(pyarrow.table(gaps), path)
    table = read_table(path)
    np.testing.assert_array_equal(table.column("n"), [1, np.nan])
    assert table.column("b").tolist() == ["True", ""]
    assert table.column("t").tolist() == ["a", ""]
    assert table.column("d").tolist() == ["2024-01-31", ""]
    assert "is damaged" in refusal(write(tmp_path, "a,b\n1,2\n", "out.parquet"))


@pytest.mark.parametrize("name", ["out.arrow", "out.feather"])
def test_arrow_files_read_back_what_was_written(tmp_path, name):
    write_table(tmp_path / name, COLUMNS)
    assert cells(read_table(tmp_path / name)) == {name: v.tolist() for name, v in COLUMNS.items()}
    assert "is damaged" in refusal(write(tmp_path, "a,b\n1,2\n", name))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(tmp_path, b"PAR1", "data.parquet")
    assert "pip install piefs-learn[app]" in refusal(path)
    with pytest.raises(InputError, match=r"piefs-learn\[app\]"):
        write_table(path, COLUMNS)
    assert path.read_bytes() == b"PAR1"


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
    assert format_csv(columns) == text
    write_table(tmp_path / "out.csv", columns)
    assert (tmp_path / "out.csv").read_text() == text


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write(tmp_path, "old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_table(path, COLUMNS)
    assert path.read_text() == "old"


def test_tables_are_read_without_jax_and_pandas():
    code = (
        "import sys, piefs.data.table_files, piefs.data.encoder;"
        "sys.exit(bool({'jax', 'pandas', 'pyarrow'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
