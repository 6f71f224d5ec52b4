"""A user's own file: its target, its splits, and that held-out rows teach nothing."""

import numpy as np
import pytest

from piefs.data import streamed, tabular
from piefs.data.readers import read_table
from piefs.data.table import Table
from piefs.data.tabular import TableOptions, load_table
from piefs.data.target import label_texts
from piefs.errors import InputError
from tables import write_table

N = 100


def columns(n=N, **replaced):
    """A plain table of n rows: two features and a target of three classes."""
    rng = np.random.default_rng(0)
    plain = {
        "a": rng.normal(size=n),
        "b": rng.normal(size=n),
        "y": np.resize(np.array(["cat", "dog", "eel", "dog"], dtype=object), n),
    }
    return plain | {name: np.asarray(cells) for name, cells in replaced.items()}


@pytest.fixture
def load(tmp_path):
    """Write columns to a file and load it, as classes unless told otherwise."""

    def write_and_load(table, name="data.csv", **keywords):
        write_table(tmp_path / name, table)
        options = TableOptions(**{"target": "y", "task": "classification"} | keywords)
        return load_table(tmp_path / name, options)

    return write_and_load


def rows_of(own, values):
    """By split, the rows of the file, found through the distinct values of the first feature."""
    place = {value: row for row, value in enumerate(values.tolist())}
    return {
        name: np.array([place[value] for value in part.x[:, 0].tolist()])
        for name, part in own.dataset.splits.items()
    }


def test_a_file_is_cut_70_15_15_with_class_shares_kept(load):
    table = columns()
    own = load(table)
    data = own.dataset
    assert [len(part) for part in data.splits.values()] == [70, 15, 15]
    shares = [np.bincount(part.y, minlength=3) / len(part) for part in data.splits.values()]
    assert np.abs(np.array(shares) - [0.25, 0.5, 0.25]).max() < 0.04
    rows = rows_of(own, table["a"])
    assert sorted(np.concatenate(list(rows.values()))) == list(range(N))
    assert data.class_names == ("cat", "dog", "eel")
    for name, part in data.splits.items():
        assert part.x.dtype == np.float64
        assert part.y.dtype == np.int32
        assert [data.class_names[i] for i in part.y] == table["y"][rows[name]].tolist()
    assert (data.name, data.feature_names, data.standardize) == ("data", ("a", "b"), True)
    assert data.description == "data.csv: 100 rows, 2 columns used"
    assert own.unlabeled is None
    assert own.notices == ()


def test_dropped_and_identifying_columns_are_no_features(load):
    table = columns(name=np.resize(["u", "v", "w"], N), z=np.arange(N) % 7)
    own = load(table, drop=["z"], id_column="name")
    assert own.dataset.feature_names == ("a", "b")


def test_a_running_number_is_dropped_though_training_sees_gaps_in_it(load):
    own = load({"row": np.arange(N)} | columns())
    assert own.dataset.feature_names == ("a", "b")
    assert own.encoder.columns[0].reason == "identifier"


def test_rare_classes_make_the_split_a_plain_shuffle_and_that_is_said(load):
    labels = np.array(["rare", "rare"] + ["cat", "dog"] * 49, dtype=object)
    table = columns(y=labels)
    own = load(table)
    assert [len(part) for part in own.dataset.splits.values()] == [70, 15, 15]
    assert "'rare' has 2 rows" in own.notices[0]
    rows = np.concatenate(list(rows_of(own, table["a"]).values()))
    assert sorted(rows) == list(range(N))
    assert rows.tolist() != list(range(N))


def test_more_classes_than_held_out_rows_make_a_plain_shuffle_too(load):
    own = load(columns(12, y=np.resize(["u", "v", "w"], 12)))
    assert "2 rows are held out for 3 classes" in own.notices[0]


def test_a_class_without_training_rows_does_not_count(load):
    labels = np.array(["cat", "dog"] * 50, object)
    labels[[80, 90, 91]] = "new"
    own = load(columns(y=labels, when=np.arange(N)), time="when")
    assert any("no training row is of class 'new'" in notice for notice in own.notices)
    assert own.dataset.class_names == ("cat", "dog")
    assert [len(part) for part in own.dataset.splits.values()] == [70, 14, 13]
    assert all(set(part.y) == {0, 1} for part in own.dataset.splits.values())


def test_held_out_rows_of_a_new_class_alone_are_refused(load):
    labels = ["cat", "dog"] * 40 + ["new"] * 20
    with pytest.raises(InputError, match="all held-out rows are of class 'new'"):
        load(columns(y=labels, when=np.arange(N)), time="when")


def test_training_rows_know_their_group(load):
    group = np.repeat(np.arange(20), N // 20)
    own = load(columns(who=group), group="who")
    kept = own.dataset.train.table.column("who").astype(int)
    for one in np.unique(kept):
        assert len(set(own.dataset.groups[kept == one])) == 1
    assert len(set(own.dataset.groups)) == len(set(kept))


def test_training_rows_in_the_order_of_time_are_left_out_by_tenths(load):
    when = np.random.default_rng(0).permutation(N)
    own = load(columns(when=when), time="when")
    times = own.dataset.train.table.column("when").astype(int)
    assert (own.dataset.groups == times // 7).all()


def test_training_rows_of_one_class_are_refused(load):
    with pytest.raises(InputError, match="training rows all have the same target"):
        load(columns(y=["cat"] * 80 + ["dog"] * 20, when=np.arange(N)), time="when")


@pytest.mark.parametrize("n_groups", [3, 20])
def test_no_group_is_in_two_splits(load, n_groups):
    group = np.random.default_rng(1).integers(n_groups, size=N)
    table = columns(site=group)
    own = load(table, group="site")
    assert own.dataset.feature_names == ("a", "b")
    parts = [set(group[rows]) for rows in rows_of(own, table["a"]).values()]
    assert all(parts)
    assert sum(map(len, parts)) == len(set(group))


@pytest.mark.parametrize("dated", [False, True])
def test_the_latest_rows_are_for_test_and_those_before_them_for_validation(load, dated):
    order = np.random.default_rng(1).permutation(N)
    when = np.datetime64("2024-01-01") + order if dated else order * 2.5
    table = columns(when=when)
    own = load(table, time="when")
    rows = rows_of(own, table["a"])
    assert order[rows["train"]].tolist() == list(range(70))
    assert order[rows["validation"]].tolist() == list(range(70, 85))
    assert order[rows["test"]].tolist() == list(range(85, 100))
    assert own.dataset.feature_names == ("a", "b")
    assert own.notices == ("column 'when' orders the rows and is not a feature",)


@pytest.mark.parametrize(
    ("replaced", "keywords", "said"),
    [
        ({"g": ["u", "v"] * 50}, {"group": "g"}, r"'g' has 2 groups; three splits need 3"),
        ({"g": ["u", "v", "w", "", ""] * 20}, {"group": "g"}, r"lacks 40 \(first: line 5\)"),
        ({"t": ["2024-01-31", ""] * 50}, {"time": "t"}, r"'t' lacks 50 \(first: line 3\)"),
        ({"t": ["2024-01-31", "later"] * 50}, {"time": "t"}, r"'t' has 'later' in line 3"),
        ({"t": [True, False] * 50}, {"time": "t"}, "--time needs numbers, or dates"),
        ({}, {"time": "a", "group": "b"}, "--group and --time"),
        ({}, {"time": "y"}, "both --target and --time"),
        ({}, {"drop": ["y"]}, "both --target and --drop"),
        ({}, {"target": "Y"}, r"no column 'Y' \(did you mean 'y'\?\); its columns are a, b, y"),
        ({}, {"drop": ["c"]}, "no column 'c'"),
        ({}, {"id_column": "c"}, "no column 'c'"),
        ({}, {"target": None}, "predict with --target; columns are a, b, y"),
        ({}, {"drop": ["a", "b"]}, "no usable feature"),
        ({}, {"task": "ranking"}, "task 'ranking' is unknown.*regression"),
        ({}, {"target": None, "task": "auto"}, "predict with --target"),
        ({}, {"target": None, "task": "regression"}, "predict with --target"),
        ({}, {"missing": "zero"}, "'zero' is unknown"),
        ({"a": np.ones(N), "b": np.ones(N)}, {}, "no usable feature"),
        ({"a": [*range(98), "", "inf"]}, {}, r"'a' has 2 missing .*line 100.*--missing impute"),
        ({"y": ["cat"] * N}, {}, "has only the value 'cat'"),
        ({"y": np.linspace(0, 1, N)}, {}, "100 distinct values in 100 rows.*--task regression"),
        ({"y": ["1.5", "2.5"] * 50}, {}, "numbers to predict, not classes.*--task regression"),
        ({}, {"task": "regression"}, "'y' has 'cat' in line 2; .*--task classification"),
        ({"y": [*range(99), "many"]}, {"task": "regression"}, "'y' has 'many' in line 101"),
        ({"y": [*range(99), "many"]}, {"task": "auto"}, "'y' has 'many' in line 101"),
        ({"y": [7.5] * N}, {"task": "regression"}, r"has only the value 7\.5"),
        (
            {"y": [0.5] * 80 + [1.5] * 20, "t": np.arange(N)},
            {"task": "regression", "time": "t"},
            "training rows all have the same target",
        ),
        ({"y": ["1.5"] * 9 + ["?"] * 91}, {"task": "auto"}, "too few rows with a value in 'y': 9"),
        ({"y": [f"name {i}" for i in range(N)]}, {}, "100 distinct values in 100 rows, too many"),
        ({"y": ["u", "v"] * 4 + ["?"] * 92}, {}, "too few rows with a value in 'y': 8"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(load, replaced, keywords, said):
    with pytest.raises(InputError, match=said) as error:
        load(columns(**replaced), **keywords)
    assert "\n" not in str(error.value)


def test_very_many_integers_are_no_classes_unless_they_repeat_often(load):
    values = np.arange(101)
    with pytest.raises(InputError, match=r"101 distinct values in 303 rows.*--task regression"):
        load(columns(303, y=np.resize(values, 303)))
    assert len(load(columns(606, y=np.resize(values, 606))).dataset.class_names) == 101
    assert len(load(columns(12, y=np.resize(values[:4], 12))).dataset.class_names) == 4


@pytest.mark.parametrize(
    ("target", "task", "said"),
    [
        (["cat", "dog"], "classification", "text"),
        (["yes", "no"], "classification", "yes or no"),
        ([True, False], "classification", "yes or no"),
        (["2024-01-31", "2024-02-01"], "classification", "text"),
        ([1, 2, "unknown"], "classification", "text"),
        ([3.0, 4.0, 8.0], "classification", "3 distinct whole numbers in 100 rows"),
        (np.arange(30), "classification", "30 distinct whole numbers in 100 rows"),
        (np.arange(31), "regression", "31 distinct whole numbers in 100 rows"),
        ([1.5, 2.5], "regression", "numbers with fractions"),
        (["0.25", "1", ""], "regression", "numbers with fractions"),
    ],
)
def test_the_target_suggests_the_task_and_the_choice_is_said(load, target, task, said):
    own = load(columns(y=np.resize(target, N)), task="auto")
    assert own.task == task
    assert own.dataset.is_regression == (task == "regression")
    assert f"the task is {task}, since column 'y' holds {said}; --task" in own.notices[0]


def test_few_rows_of_distinct_whole_numbers_are_numbers_to_predict(load):
    assert load(columns(12, y=np.arange(12)), task="auto").task == "regression"


def test_a_task_that_is_asked_for_is_done_without_a_word(load):
    table = columns(y=np.resize(np.arange(40), N))
    for task in ("classification", "regression"):
        own = load(table, task=task)
        assert (own.task, own.dataset.is_regression) == (task, task == "regression")
        assert not any("the task is" in notice for notice in own.notices)


@pytest.mark.parametrize("name", ["data.csv", "data.npz"])
def test_numbers_to_predict_are_kept_as_they_are_and_cut_70_15_15(load, name):
    table = columns(y=1e6 + np.random.default_rng(2).normal(size=N))
    own = load(table, name, task="regression")
    data = own.dataset
    assert [len(part) for part in data.splits.values()] == [70, 15, 15]
    rows = rows_of(own, table["a"])
    assert sorted(np.concatenate(list(rows.values()))) == list(range(N))
    for split, part in data.splits.items():
        assert part.y.dtype == np.float64
        np.testing.assert_array_equal(part.y, table["y"][rows[split]])
    assert (data.class_names, data.target_name, own.unlabeled) == ((), "y", None)
    other = load(table, name, task="regression", split_seed=1).dataset
    assert not np.array_equal(other.test.x, data.test.x)


def test_numbers_may_be_split_by_group_and_by_time(load):
    numbers, group = np.linspace(0, 1, N), np.arange(N) % 10
    table = columns(y=numbers, g=group, t=np.arange(N)[::-1])
    parts = rows_of(load(table, task="auto", group="g"), table["a"]).values()
    assert sum(len(set(group[rows])) for rows in parts) == 10
    by_time = load(table, task="auto", time="t").dataset
    assert by_time.test.y.max() < by_time.validation.y.min()
    assert by_time.validation.y.max() < by_time.train.y.min()


def test_nine_rows_are_too_few_and_ten_are_enough(load):
    with pytest.raises(InputError, match="too few rows with a value in 'y': 9"):
        load(columns(9))
    with pytest.raises(InputError, match="too few rows: 9"):
        load(columns(9), target=None, task="unsupervised")
    assert len(load(columns(10)).dataset.train) == 6


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 9, 2, 10], ("2", "9", "10")),
        (["1.0", "0.0", "2.0", "0.0"], ("0", "1", "2")),
        ([True, False], ("False", "True")),
        (["yes", "no"], ("no", "yes")),
    ],
)
@pytest.mark.parametrize("name", ["data.csv", "data.npz"])
def test_class_names_are_sorted_as_numbers_if_they_are_numbers(load, labels, names, name):
    table = columns(y=np.resize(labels, N))
    data = load(table, name).dataset
    assert data.class_names == names
    known = label_texts(Table(table).column("y"))
    train = rows_of(load(table, name), table["a"])["train"]
    assert [names[i] for i in data.train.y] == known[train].tolist()


def test_without_a_target_all_rows_are_of_one_class(load):
    data = load(columns(), target=None, task="unsupervised").dataset
    assert data.class_names == ("all",)
    assert data.feature_names == ("a", "b", "y=cat", "y=dog", "y=eel")
    assert not any(part.y.any() for part in data.splits.values())
    assert [len(part) for part in data.splits.values()] == [70, 15, 15]


@pytest.mark.parametrize(
    ("values", "nothing"),
    [(np.linspace(0, 1, N), ("", "inf", "NA")), (columns()["y"], ("", "none", "NA"))],
    ids=["numbers", "classes"],
)
def test_rows_without_a_target_are_kept_apart_and_counted(load, values, nothing):
    labels = values.astype(object)
    labels[[3, 50, 51]] = nothing
    table = columns(y=labels)
    own = load(table, task="auto")
    assert sum(map(len, own.dataset.splits.values())) == 97
    assert all(np.isfinite(part.y).all() for part in own.dataset.splits.values())
    np.testing.assert_array_equal(own.unlabeled[:, 0], table["a"][[3, 50, 51]])
    words = ", ".join(map(repr, sorted(nothing)))
    assert own.notices[-1] == (
        f"3 rows have no value in 'y' ({words}) and are kept apart, unlabeled"
    )


def test_a_target_may_be_known_without_being_learned_from(load):
    assert load(columns(), task="unsupervised").dataset.class_names == ("cat", "dog", "eel")
    own = load(columns(y=np.linspace(0, 1, N)), task="unsupervised")
    assert (own.task, own.dataset.is_regression) == ("unsupervised", True)


@pytest.mark.parametrize("split", [{}, {"group": "g"}, {"time": "t"}])
def test_held_out_rows_change_no_training_number(load, split):
    extra = {
        "g": np.resize(np.arange(20), N),
        "t": np.random.default_rng(1).permutation(N),
        "c": np.resize(np.array(["u", "v"], dtype=object), N),
        "m": np.resize(np.array([1.0, 4.0, np.nan, 2.0]), N),
        "k": np.ones(N),
    }
    table = columns(**extra)
    first = load(table, missing="impute", **split)
    rows = rows_of(first, table["a"])
    held_out = np.concatenate([rows["validation"], rows["test"]])
    for name, outlier in (("b", 1e9), ("m", 1e9), ("c", "odd"), ("k", 7.0)):
        table[name] = table[name].copy()
        table[name][held_out] = outlier
    second = load(table, missing="impute", **split)
    np.testing.assert_array_equal(second.dataset.train.x, first.dataset.train.x)
    assert second.dataset.feature_names == first.dataset.feature_names
    assert [c.fill for c in second.encoder.columns] == [c.fill for c in first.encoder.columns]
    assert second.dataset.test.x.max() == 1e9


def test_a_second_file_in_another_order_gives_the_numbers_of_the_first(load, tmp_path):
    table = columns(c=np.resize(["u", "v", "w"], N))
    own = load(table)
    rows = rows_of(own, table["a"])["test"]
    moved = {name: table[name][rows] for name in ("c", "y", "b", "a")}
    write_table(tmp_path / "new.csv", moved)
    np.testing.assert_array_equal(
        own.encoder.transform(read_table(tmp_path / "new.csv")), own.dataset.test.x
    )


# --- block by block ----------------------------------------------------------------------------


def loaded(path, **options):
    return load_table(path, TableOptions(**options), streamed=True)


@pytest.mark.parametrize("roles", [{}, {"group": "who"}, {"time": "day"}], ids=str)
def test_encoding_splits_and_rows_are_those_of_a_table_in_memory(mixed, roles, monkeypatch):
    monkeypatch.setattr(streamed, "BLOCK_CELLS", 200)
    roles = {"target": "bought", "missing": "impute"} | roles
    from_blocks = loaded(mixed / "parts", **roles)
    whole = load_table(mixed / "whole.parquet", TableOptions(**roles))
    assert from_blocks.encoder == whole.encoder
    assert from_blocks.task == whole.task
    for name, part in whole.dataset.splits.items():
        order = np.argsort(part.table.lines)
        found = from_blocks.dataset.splits[name]
        np.testing.assert_array_equal(found.x[:], part.x[order])
        np.testing.assert_array_equal(found.y, part.y[order])


def test_columns_of_very_many_rows_are_judged_by_a_sample(mixed, monkeypatch):
    monkeypatch.setattr(tabular, "MOST_HELD_OUT", 20)
    monkeypatch.setattr(tabular, "SAMPLE_CELLS", 6 * 60)
    own = loaded(mixed / "parts", target="bought", missing="impute")
    assert any("judged by 60 training rows" in notice for notice in own.notices)
    kinds = {column.name: column.kind for column in own.encoder.columns}
    assert kinds == {
        "price": "number", "kind": "category", "day": "date", "row": "dropped", "who": "category"
    }  # fmt: skip


def test_few_of_many_rows_are_held_out_and_few_of_training_are_measured(mixed, monkeypatch):
    monkeypatch.setattr(tabular, "MOST_HELD_OUT", 20)
    data = loaded(mixed / "parts", target="bought", missing="impute").dataset
    assert [len(part) for part in data.splits.values()] == [240 - 40, 20, 20]
    assert len(data.in_memory.train) == 20
    assert isinstance(data.in_memory.train.x, np.ndarray)


def test_rows_that_are_too_many_to_be_held_out_are_not_trained_on(mixed, monkeypatch):
    monkeypatch.setattr(tabular, "MOST_HELD_OUT", 5)
    data = loaded(mixed / "parts", target="bought", missing="impute", time="day").dataset
    assert [len(part) for part in data.splits.values()] == [240 - 2 * 36, 5, 5]


def test_a_column_of_an_array_in_a_file_is_the_target_of_the_others(tmp_path, rng):
    x = np.column_stack([rng.normal(size=(240, 3)), np.arange(240) % 3])
    np.save(tmp_path / "x.npy", x)
    data = loaded(tmp_path / "x.npy", target="x3").dataset
    assert data.class_names == ("0", "1", "2")
    rows = data.train.x.numbers
    np.testing.assert_array_equal(data.train.y, rows % 3)
    np.testing.assert_array_equal(data.train.x[:], x[rows, :3])


def test_yes_and_no_may_be_any_bytes(tmp_path):
    """A file may hold other bytes than 0 and 1 for them, which numpy cannot look up."""
    cells = np.arange(2 * 240, dtype=np.uint8).reshape(240, 2)
    cells[::2, 1] = 0
    np.save(tmp_path / "x.npy", cells.view(bool))
    own = loaded(tmp_path / "x.npy", target="x1")
    assert own.dataset.class_names == ("False", "True")
    assert np.bincount(own.dataset.train.y).min() > 0
