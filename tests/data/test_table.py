"""Named columns that know their rows."""

import numpy as np
import pytest

from piefs.data.table import Table, coded
from piefs.errors import InputError


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


def test_rows_taken_remember_their_lines():
    columns = {"a": np.array(list("135"), object), "b": np.arange(3)}
    table = Table(columns, lines=np.array([2, 3, 7]), unit="line").without(["b"])
    part = table.take(np.array([2, 0]))
    assert len(part) == 2
    assert part.columns["a"].tolist() == ["5", "1"]
    assert part.names == ("a",)
    assert [part.place(row) for row in range(2)] == ["line 7", "line 2"]


def test_objects_become_text_and_large_unsigned_integers_do_not_turn_negative():
    values = np.array([None, 1.5, b" b ", np.nan, "c "], dtype=object)
    assert Table({"a": values}).column("a").tolist() == ["", "1.5", "b", "nan", "c"]
    assert Table({"a": np.array([2**64 - 1], np.uint64)}).column("a")[0] > 0


@pytest.mark.parametrize(
    "values",
    [np.array([3, 1, 3, 7]), np.array(list("bacab"), object), np.array([0.5, np.nan, -1, np.nan])],
    ids=str,
)
def test_codes_give_the_values_back(values):
    distinct, codes = coded(values)
    np.testing.assert_array_equal(distinct, np.unique(values))
    np.testing.assert_array_equal(distinct[codes], values)
    assert codes.dtype == np.int32
