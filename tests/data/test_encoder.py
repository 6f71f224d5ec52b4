"""From columns to numbers: what each becomes, and that prediction treats it as training did."""

import json
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from piefs.data.encoder import TableEncoder
from piefs.data.readers import read_table
from piefs.data.table import MISSING, Table, is_missing, kind_of, parse
from piefs.errors import InputError, ModelFileError


def text(*cells):
    return np.array(cells, dtype=object)


def table(source="data.csv", **columns):
    return Table({name: np.asarray(cells) for name, cells in columns.items()}, source)


NUMBERS = [3.5, 1, 2, 8, 5, 4]


def fit(**columns):
    """The encoding of a single column, beside one that keeps the table usable."""
    (name, cells), *_ = columns.items()
    numbers = np.resize(NUMBERS, len(cells))
    return TableEncoder.fit(table(**{name: cells}, other=numbers), "impute").columns[0]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (text("1", "-2.5", "1e3", ""), "number"),
        (text("0", "1", "1"), "number"),
        (text("yes", "No", "N/A"), "boolean"),
        (text("True", "false"), "boolean"),
        (text("2024-01-31", "2024/02/01 12:00", "?"), "date"),
        (text("red", "blue", "None"), "category"),
        (text("1", "2", "b"), "category"),
        (text("1_000", "2_000"), "category"),
        (text("20240131", "20240201"), "number"),
        (np.array([1, 2]), "number"),
        (np.array([True, False]), "boolean"),
    ],
)
def test_kind_is_the_first_that_all_cells_are(cells, kind):
    assert kind_of(cells) == kind


def test_words_for_nothing_count_in_any_case_and_so_does_infinity():
    words = [word.upper() for word in MISSING]
    assert is_missing(text(*words, "0", "nothing")).tolist() == [True] * 7 + [False] * 2
    assert is_missing(np.array([np.nan, -np.inf, 0])).tolist() == [True, True, False]
    values, unreadable = parse(text("inf", "1e999", "-Infinity", "7", "x"), "number")
    np.testing.assert_array_equal(values, [np.nan, np.nan, np.nan, 7, np.nan])
    assert unreadable.tolist() == [False] * 4 + [True]


def test_dates_are_days_since_1970_in_utc():
    cells = text(
        "1970-01-02", "1970/01/03", "1970-01-01T12:00", "1970-01-01T12:00+06:00", "1969-12-31"
    )
    np.testing.assert_array_equal(parse(cells, "date")[0], [1, 2, 0.5, 0.25, -1])


def test_numbers_are_read_as_booleans_only_where_they_are_0_and_1_and_never_as_dates():
    assert parse(np.array([0.0, 1, 2, np.nan]), "boolean")[1].tolist() == [0, 0, 1, 0]
    assert parse(np.array([0.0, np.nan]), "date")[1].tolist() == [1, 0]
    for kind in ("boolean", "date"):
        assert parse(text("7", "8"), kind)[1].all()
    np.testing.assert_array_equal(parse(text("Y", "0", "no"), "boolean")[0], [1, 0, 0])


def test_each_category_has_a_column_in_sorted_order():
    encoder = TableEncoder.fit(table(color=text("red", "blue", "green", "red")))
    assert encoder.feature_names == ("color=blue", "color=green", "color=red")
    np.testing.assert_array_equal(
        encoder.transform(table(color=text("green", "red", "violet"))),
        [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
    )
    seen = table(color=text("green", "violet", "pink", ""))
    lenient = TableEncoder(encoder.columns, "impute")
    assert lenient.unseen(seen) == {"color": 2}
    assert lenient.unseen(table(color=text("red", ""))) == {}


def test_only_the_most_frequent_categories_have_columns():
    names = [f"c{i:02}" for i in range(25)]
    column = fit(c=text(*names[5:] * 3, *names[:5] * 2))
    assert column.categories == tuple(names[5:])
    assert column.describe() == ("c: 25 categories, one column for each of the 20 most frequent")


def test_numbers_in_a_binary_file_find_their_text_categories():
    encoder = TableEncoder.fit(table(c=text("1", "2", "x", "1")), "impute")
    np.testing.assert_array_equal(
        encoder.transform(table(c=np.array([1.0, np.nan, 2.0]))), [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    )
    np.testing.assert_array_equal(encoder.transform(table(c=np.array([2]))), [[0, 1, 0]])


LETTERS = [chr(ord("a") + i % 26) * (1 + i // 26) for i in range(40)]


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("c", text("a", "a", ""), "constant"),
        ("c", np.ones(3), "constant"),
        ("c", text("yes", "yes"), "constant"),
        ("c", text("", "NA", "?"), "empty"),
        ("c", np.full(3, np.nan), "empty"),
        ("c", text(*LETTERS[:21]), "identifier"),
        ("c", text(*LETTERS[:20]), ""),
        ("c", text(*LETTERS[:36], *LETTERS[:4]), ""),
        ("c", text(*LETTERS[:37], *LETTERS[:3]), "identifier"),
        ("row", np.arange(7, 17), "identifier"),
        ("row", text(*map(str, range(10))), "identifier"),
        ("row", np.arange(0, 20, 2), ""),
        ("row", np.arange(10)[::-1], ""),
        ("row", np.arange(10) + 0.5, ""),
        ("row", np.arange(2), ""),
        ("row", np.array([1e308, -1e308, 5]), ""),
        ("day", text("2024-01-30", "2024-01-31", "2024-02-01"), ""),
        *(
            (name, np.array([4, 9, 2]), "identifier")
            for name in ("id", "Index", "user_id", "userId")
        ),
        ("user_id", np.array([4, 9, 4]), ""),
        ("user_id", np.array([4.5, 9, 2]), ""),
        *((name, np.array([4, 9, 2]), "") for name in ("paid", "body_mass_index", "GRID")),
    ],
)
def test_constant_empty_and_identifying_columns_are_dropped_and_no_others(name, cells, reason):
    column = fit(**{name: cells})
    assert column.reason == reason
    assert (column.kind == "dropped") == bool(reason)


def test_sentences_say_what_becomes_of_each_column():
    n = 24
    messy = table(
        color=text(*["red", "blue", "green", "red"] * 6),
        age=text(*["", "37", "30", "44"] * 6),
        member=text(*["yes", "no", "no", ""] * 6),
        joined=text(*["2020-03-01", "2020-03-03", "", "2020-03-05"] * 6),
        hue=text(*["", "b", "c", "b"] * 6),
        row=np.arange(n),
        country=text(*["NZ"] * n),
        notes=text(*[""] * n),
        score=np.resize(NUMBERS, n),
    )
    assert TableEncoder.fit(messy, "impute").describe() == [
        "color: 3 categories, one column each (blue, green, red)",
        "age: number, 6 missing values replaced by the median 37",
        "member: boolean, as 1 and 0, 6 missing values replaced by the more frequent 0",
        "joined: date, as days since 1970-01-01, "
        "6 missing values replaced by the median 2020-03-03",
        "hue: 2 categories, one column each (b, c), 6 missing values left without a category",
        "row: dropped, it looks like an identifier (use --id row to carry it through)",
        "country: dropped, it has the same value in every row",
        "notes: dropped, it has no values",
        "score: number",
    ]


def test_gaps_are_an_error_that_names_columns_counts_lines_and_the_remedy(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n1,x,1\n,y,5\n2,,7\ninf,x,2\n")
    said = (
        r"data.csv: column 'a' has 2 missing or infinite values \(first: line 3\), "
        r"column 'b' has 1 missing or infinite value \(first: line 4\); .*--missing impute"
    )
    with pytest.raises(InputError, match=said):
        TableEncoder.fit(read_table(path))


def test_gaps_at_prediction_are_an_error_or_filled_as_in_training():
    whole = table(a=NUMBERS, b=text(*"xyxxxy"), t=text(*["yes"] * 4, "no", "no"))
    gap = table("new.csv", a=[np.inf], b=text("?"), t=text(""))
    with pytest.raises(InputError, match=r"new.csv: column 'a'.*row 1.*'b'.*'t'.*--missing impute"):
        TableEncoder.fit(whole).transform(gap)
    filled = TableEncoder.fit(whole, "impute").transform(gap)
    np.testing.assert_array_equal(filled, [[3.75, 0, 0, 1]])


def test_gaps_in_dropped_columns_matter_to_nobody():
    whole = table(a=NUMBERS, k=text("c", "c", "", "c", "c", "c"))
    np.testing.assert_array_equal(TableEncoder.fit(whole).transform(whole)[:, 0], NUMBERS)


def test_an_unknown_policy_is_refused():
    with pytest.raises(InputError, match="'zero' is unknown; choose one of error, impute"):
        TableEncoder.fit(table(a=NUMBERS), "zero")


def test_a_table_without_features_is_refused_with_the_reasons():
    with pytest.raises(InputError, match=r"no usable feature: a: dropped.*; b: dropped, it has no"):
        TableEncoder.fit(table(a=np.ones(3), b=text("", "", "")))


def test_columns_are_found_by_name_and_others_ignored():
    encoder = TableEncoder.fit(table(a=NUMBERS, b=NUMBERS[::-1]))
    moved = table(extra=text(*"uvwxyz"), b=NUMBERS[::-1], a=NUMBERS)
    np.testing.assert_array_equal(encoder.transform(moved), np.transpose([NUMBERS, NUMBERS[::-1]]))


def test_lacking_columns_are_listed_with_their_likeness():
    encoder = TableEncoder.fit(table(height=NUMBERS, b=NUMBERS, age=NUMBERS, k=np.ones(6)))
    lacking = table("new.csv", Height=NUMBERS, b=NUMBERS)
    with pytest.raises(
        InputError, match=r"new.csv lacks the columns 'height' \(did you mean 'Height'\?\), 'age'$"
    ):
        encoder.transform(lacking)


@pytest.mark.parametrize(
    ("trained", "cell", "noun"),
    [
        (np.array(NUMBERS), "tall", "numbers"),
        (text("yes", "no", "no"), "maybe", "yes or no"),
        (text("2024-01-31", "2024-02-01"), "yesterday", "dates"),
    ],
)
def test_a_cell_of_another_kind_is_refused_with_its_place(tmp_path, trained, cell, noun):
    encoder = TableEncoder.fit(table(a=trained), "impute")
    path = tmp_path / "new.csv"
    path.write_text(f"a\n{trained[0]}\n{cell}\n")
    with pytest.raises(InputError, match=f"new.csv: column 'a' .* {noun}, but line 3 has '{cell}'"):
        encoder.transform(read_table(path))


def test_a_long_cell_is_shown_in_part():
    with pytest.raises(InputError, match=f"has '{'x' * 40}…'"):
        TableEncoder.fit(table(a=NUMBERS)).transform(table(a=text("x" * 1000)))


def test_a_slip_among_many_numbers_is_an_error_not_a_category():
    cells = text(*(f"{i}.5" for i in range(40)), "n.a.")
    with pytest.raises(InputError, match=r"'a' should hold numbers, but row 41 has 'n\.a\.'"):
        TableEncoder.fit(table(a=cells))
    days = text(*(f"2024-01-{i:02}" for i in range(1, 31)), "January")
    with pytest.raises(InputError, match="'a' should hold dates, but row 31 has 'January'"):
        TableEncoder.fit(table(a=days))


def test_only_training_rows_decide_what_becomes_of_a_column():
    a = np.array([1.0, 2, 4, 1e9, np.nan])
    c = text("u", "v", "u", "w", "")
    k = np.array([5.0, 5, 5, 6, 7])
    encoder = TableEncoder.fit(table(a=a, c=c, k=k), "impute", rows=np.array([2, 0, 1]))
    assert encoder.columns[0].fill == 2
    assert encoder.columns[1].categories == ("u", "v")
    assert encoder.columns[2].reason == "constant"


def test_unusable_cells_outside_the_training_rows_are_found_at_once():
    rows = np.arange(3)
    with pytest.raises(InputError, match="row 4 has 'x'"):
        TableEncoder.fit(table(a=text("1", "2", "4", "x")), rows=rows)
    with pytest.raises(InputError, match=r"first: row 4"):
        TableEncoder.fit(table(a=text("1", "2", "4", "")), rows=rows)


def test_a_running_number_is_known_from_all_rows():
    rows = np.array([0, 2, 5])
    data = table(row=np.arange(10), a=np.resize(NUMBERS, 10))
    assert TableEncoder.fit(data, rows=rows).columns[0].reason == "identifier"


MESSY = """id,joined,color,age,member,score
901,2024-01-31,red,31,yes,0.5
17,2024/02/01,blue,,no,1.5
44,,red,44,NA,2.5
3,2023-12-24,green,27,yes,?
58,2024-01-01,none,61,no,-1
"""


def test_a_messy_file_and_its_columns_in_another_order_give_the_same_numbers(tmp_path):
    path, moved = tmp_path / "train.csv", tmp_path / "new.csv"
    path.write_text(MESSY)
    order = [3, 5, 0, 2, 4, 1]
    lines = [line.split(",") for line in MESSY.splitlines()]
    moved.write_text("\n".join("; ".join(line[i] for i in order) for line in lines))
    encoder = TableEncoder.fit(read_table(path), "impute")
    assert encoder.feature_names == (
        *("joined", "color=blue", "color=green", "color=red", "age", "member", "score"),
    )
    x = encoder.transform(read_table(path))
    assert x.dtype == np.float64
    np.testing.assert_array_equal(
        x,
        [
            [19753, 0, 0, 1, 31, 1, 0.5],
            [19754, 1, 0, 0, 37.5, 0, 1.5],
            [19738, 0, 0, 1, 44, 0, 2.5],
            [19715, 0, 1, 0, 27, 1, 1.0],
            [19723, 0, 0, 0, 61, 0, -1],
        ],
    )
    np.testing.assert_array_equal(encoder.transform(read_table(moved)), x)


def encoder_of_all_kinds():
    return TableEncoder.fit(
        table(
            n=[0.1, 1 / 3, 1e300],
            b=text("yes", "no", ""),
            d=text("2024-01-31", "", "0001-01-01T00:00+14:00"),
            c=text("ü", 'a "b"', ""),
            k=np.ones(3),
        ),
        "impute",
    )


def test_an_encoder_survives_json():
    encoder = encoder_of_all_kinds()
    again = TableEncoder.from_document(json.loads(json.dumps(encoder.to_document())))
    assert again == encoder
    assert again.describe() == encoder.describe()


def _replaced(place, value):
    document = encoder_of_all_kinds().to_document()
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["missing"], "ignore"),
        (["missing"], ["error"]),
        (["surplus"], 1),
        (["columns"], {}),
        (["columns"], []),
        (["columns"], [None]),
        (["columns", 0], {"name": "n"}),
        (["columns", 0, "surplus"], 1),
        (["columns", 0, "name"], 7),
        (["columns", 0, "name"], "b"),
        (["columns", 0, "kind"], "__import__('os')"),
        (["columns", 0, "kind"], ["number"]),
        (["columns", 0, "fill"], float("nan")),
        (["columns", 0, "fill"], "1"),
        (["columns", 1, "fill"], 0.5),
        (["columns", 0, "n_missing"], -1),
        (["columns", 0, "n_missing"], True),
        (["columns", 0, "n_missing"], 10**400),
        (["columns", 0, "categories"], ["a"]),
        (["columns", 3, "categories"], []),
        (["columns", 3, "categories"], "ab"),
        (["columns", 3, "categories"], ["b", "a"]),
        (["columns", 3, "categories"], ["a", "a"]),
        (["columns", 3, "categories"], ["a", 7]),
        (["columns", 3, "categories"], [1, 2]),
        (["columns", 3, "categories"], ["a", ["b"]]),
        (["columns", 3, "n_categories"], 1),
        (["columns", 4, "reason"], ""),
        (["columns", 4, "reason"], "{name.__class__}"),
        (["columns", 0, "reason"], "constant"),
    ],
)
def test_a_document_that_cannot_be_right_is_refused(place, value):
    for document in (_replaced(place, value), value, {}):
        with pytest.raises(ModelFileError, match="table encoding is damaged"):
            TableEncoder.from_document(document)


def test_more_columns_than_a_category_can_have_are_refused():
    document = _replaced(["columns", 3, "n_categories"], 1000)
    names = document["columns"][3]["categories"] = [f"c{i:02}" for i in range(20)]
    assert TableEncoder.from_document(document).columns[3].categories == tuple(names)
    names.append("c20")
    with pytest.raises(ModelFileError):
        TableEncoder.from_document(document)


def test_a_date_from_a_foreign_document_is_described_without_failing():
    document = deepcopy(_replaced(["columns", 2, "fill"], 1e300))
    assert "9999-12-31" in TableEncoder.from_document(document).describe()[2]


CELLS = {
    "number": st.floats(width=64).map(str) | st.integers(-5, 5).map(str),
    "boolean": st.sampled_from(["yes", "no"]),
    "date": st.datetimes().map(str),
    "category": st.sampled_from(["red", "green", "blue"]) | st.text(max_size=3),
}


@st.composite
def tables(draw):
    n = draw(st.integers(2, 8))
    gap = st.sampled_from(["", "NA", "?"])
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = {
        f"c{i}": text(*draw(st.lists(CELLS[kind] | gap, min_size=n, max_size=n)))
        for i, kind in enumerate(kinds)
    }
    return Table(columns | {"other": np.resize(NUMBERS, n)})


@given(tables(), st.randoms(use_true_random=False))
def test_imputed_features_are_finite_and_do_not_depend_on_the_order_of_columns(data, random):
    encoder = TableEncoder.fit(data, "impute")
    x = encoder.transform(data)
    assert x.shape == (len(data), len(encoder.feature_names))
    assert np.isfinite(x).all()
    names = random.sample(data.names, len(data.names))
    shuffled = Table({name: data.columns[name] for name in names})
    np.testing.assert_array_equal(encoder.transform(shuffled), x)
    again = TableEncoder.fit(shuffled, "impute")
    assert {column.name: column for column in again.columns} == {
        column.name: column for column in encoder.columns
    }
