"""The benchmark on tables: what methods are given, what is measured, ranks, and the page."""

import os

import numpy as np
import pandas as pd
import pytest

from lab.tables import data, own, page, records, sizes, worker
from lab.tables.__main__ import fit_missing, options
from lab.tables.data import CLASSES, NUMBERS, Table
from lab.tables.methods import METHODS
from lab.tables.ranking import (
    by_table,
    cliques,
    critical_difference,
    gaps,
    matrix,
    ranks,
    scored,
    shares_near_best,
)
from reproduction.study import Study

FIVE = (*CLASSES[:4], NUMBERS[0])


@pytest.fixture
def table():
    """60 rows: a number with a gap, a text that one test row alone has, a constant."""
    x = np.arange(60.0)
    columns = pd.DataFrame({"x": x, "kind": ["b", "a"] * 30, "same": 1})
    small = Table("small", columns, (x >= 30).astype(int), False)
    (_, *_), (first, second, *_) = data.cut(small, 100)
    columns.loc[first, "x"] = np.nan
    columns.loc[second, "kind"] = "seldom"
    return small, first, second


def record(table, method, split=100, **keywords):
    measure = "accuracy" if table in CLASSES else "r2"
    found = {"table": table, "method": method, "split": split, "key": "1", "idle": False}
    found |= {measure: 0.5, "fit_seconds": 1.0} | keywords
    return found | ({"log_loss": 0.3, "ece": 0.1} if table in CLASSES else {})


def three_methods(**keywords):
    """Forest before boosting before linear, half a point apart, on five tables."""
    best = {"forest": 0.9, "boosting": 0.895, "linear": 0.88}
    return [
        record(name, method, **{"accuracy" if name in CLASSES else "r2": score}, **keywords)
        for name in FIVE
        for method, score in best.items()
    ]


def test_every_method_sees_the_same_rows_and_classes_keep_their_shares(table):
    train, test = data.cut(table[0], 101)
    assert sorted([*train, *test]) == list(range(60))
    assert len(test) == 18
    assert table[0].y[test].mean() == 0.5
    assert not np.array_equal(test, data.cut(table[0], 102)[1])


def test_what_a_method_does_not_take_is_filled_and_coded_by_the_training_rows(table):
    small, first, second = table
    train, _ = data.cut(small, 100)
    found = data.task(small, 100, categories=False, gaps=False)
    assert list(found.x.columns) == ["x", "kind_a", "kind_b"]
    assert found.x_test.loc[first, "x"] == np.median(train)
    assert not found.x_test.loc[second, ["kind_a", "kind_b"]].any()
    assert found.x.drop(columns="x").sum(axis=1).eq(1).all()


def test_what_a_method_takes_is_left_as_it_is(table):
    small, first, second = table
    found = data.task(small, 100, categories=True, gaps=True)
    assert found.categories == ["kind"]
    assert np.isnan(found.x_test.loc[first, "x"])
    assert found.x_test["kind"].isna().sum() == 1
    assert second in found.x_test.index[found.x_test["kind"].isna()]


def test_scores_of_probabilities_and_numbers():
    p = np.array([[1.0, 0.0], [0.8, 0.2]])
    found = worker.scores(np.array([1, 0]), p, regression=False)
    assert found["accuracy"] == 0.5
    assert found["ece"] == pytest.approx((1 + 0.2) / 2)
    assert found["log_loss"] == pytest.approx(-(np.log(1e-6) + np.log(0.8)) / 2, rel=1e-4)
    numbers = worker.scores(np.array([0.0, 2]), np.array([[0.0], [1]]), regression=True)
    assert numbers == {"r2": 0.5, "rmse": pytest.approx(0.5**0.5)}


def test_a_fit_is_recorded_and_not_run_again(tmp_path, monkeypatch, table):
    monkeypatch.setattr(data, "read", lambda name: table[0])
    path = tmp_path / "results"
    worker.run(str(path), "small", "boosting", [100], idle=False)
    study = Study(path)
    found = study["small/boosting/100"]
    assert found["accuracy"] > 0.8
    assert found["peak_mb"] > 50
    assert not found["idle"]
    assert "scikit-learn" in found["versions"]
    splits = [100, 101]
    assert records.missing(study, "small", "boosting", splits, idle=False) == [101]
    assert records.missing(study, "small", "boosting", splits, idle=True) == splits
    study.add("small/boosting/100", found | {"key": "older"})
    assert records.missing(study, "small", "boosting", splits, idle=False) == splits


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize(
    "name",
    ["linear", *(pytest.param(name, marks=pytest.mark.slow) for name in ("forest", "mlp", "svm"))],
)
def test_methods_learn_a_step(name, regression, table):
    small = Table("small", table[0].columns, table[0].y * 1.0, True) if regression else table[0]
    method = METHODS[name]
    task = data.task(small, 101, categories=method.categories, gaps=method.gaps)
    output = method.fit(task)
    output = output.predict(task.x_test) if regression else output.predict_proba(task.x_test)
    found = worker.scores(task.y_test, np.asarray(output), regression=regression)
    assert found["r2" if regression else "accuracy"] > 0.6


def test_a_table_is_read_with_empty_cells_as_gaps_and_text_as_it_stands(tmp_path, monkeypatch):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "heart.csv").write_text("a,b,target\n1,NA,yes\n,x,no\n3,y,yes\n")
    monkeypatch.setenv("PIEFS_DATA", str(tmp_path))
    found = data.read("heart")
    assert found.y.tolist() == [1, 0, 1]
    assert found.columns["a"].isna().tolist() == [False, True, False]
    assert found.columns["b"].tolist() == ["NA", "x", "y"]


@pytest.mark.slow
def test_a_run_goes_on_where_it_ended_and_outlives_a_fit_that_fails(tmp_path, monkeypatch, capsys):
    (tmp_path / "tables").mkdir()
    rows = "".join(f"{i},{i % 2}\n" for i in range(60))
    (tmp_path / "tables" / "heart.csv").write_text(f"x,target\n{rows}")
    (tmp_path / "tables" / "bupa.csv").write_text("x,target\n1,yes\n2,no\n")
    monkeypatch.setenv("PIEFS_DATA", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", "."]))
    monkeypatch.chdir(page.DOCS.parent)
    arguments = ["--tables", "heart", "bupa", "--methods", "linear", "--splits", "100"]
    found = options([*arguments, "--records", str(tmp_path / "results")])
    assert fit_missing(found) == 1
    assert list(Study(found.records)) == ["heart/linear/100"]
    assert "bupa linear [100]: failed: ValueError" in capsys.readouterr().out
    assert fit_missing(found) == 1
    assert "heart" not in capsys.readouterr().out


def test_methods_tables_and_splits_can_be_chosen():
    found = options(["--tables", "heart", "--methods", "svm", "--splits", "104", "--idle"])
    assert (found.tables, found.methods, found.splits) == (["heart"], ["svm"], [104])
    assert found.idle
    assert not options([]).idle


def test_only_splits_that_all_methods_have_are_compared():
    found = [record("heart", "forest", accuracy=0.8), record("heart", "svm", accuracy=0.6)]
    found.append(record("heart", "forest", split=101, accuracy=0.2))
    scores = by_table(found, "accuracy", ["forest", "svm"])
    assert scores == {"heart": {"forest": 0.8, "svm": 0.6}}
    assert not by_table(found, "accuracy", ["forest", "svm", "mlp"])
    assert "| heart | **80.00%** | 60.00% |" in page.page(found)


def test_ranks_gaps_and_shares():
    values = matrix(scored(three_methods(), ["forest", "boosting", "linear"]), ["linear", "forest"])
    np.testing.assert_array_equal(ranks(values)[0], [2, 1])
    np.testing.assert_array_equal(ranks(np.array([[0.5, 0.5, 0.1]])), [[1.5, 1.5, 3]])
    np.testing.assert_allclose(gaps(values)[0], [2, 0])
    np.testing.assert_allclose(gaps(np.array([[-40.0, 0.0]])), [[100, 0]])
    np.testing.assert_allclose(shares_near_best(np.array([[0.5, 0.495], [0.6, 0.5]])), [1, 0.5])


def test_critical_differences_are_those_of_the_table_by_demsar():
    # q at 5 % is 1.960 for two and 2.728 for five classifiers (Demšar 2006, Table 5a).
    assert critical_difference(2, 14) == pytest.approx(1.960 * (6 / (6 * 14)) ** 0.5, rel=1e-3)
    assert critical_difference(5, 30) == pytest.approx(2.728 * (30 / 180) ** 0.5, rel=1e-3)


def test_cliques_are_the_longest_runs_within_the_difference():
    assert cliques([1.0, 1.5, 2.4, 4.0], 1.0) == [(1.0, 1.5), (1.5, 2.4)]
    assert cliques([1.0, 1.2, 1.4], 1.0) == [(1.0, 1.4)]


def test_the_page_shows_seconds_of_idle_runs_alone():
    busy, idle = page.page(three_methods()), page.page(three_methods(idle=True))
    assert "| random forest | 1.00 | 100% | 0.00 | 0.3000 | 0.1000 | – |" in busy
    assert "| random forest | 1.00 | 100% | 0.00 | 0.3000 | 0.1000 | 1.0 |" in idle
    assert "tables-time.png" in idle
    assert "tables-time.png" not in busy


def test_a_method_without_some_tables_is_compared_apart():
    found = three_methods() + [record(name, "ebm", accuracy=0.99) for name in CLASSES[4:6]]
    found += [record(name, m) for name in CLASSES[4:6] for m in ("forest", "boosting", "linear")]
    text = page.page(found)
    assert "EBM" not in text.split("## Accuracy")[0].split("## In short")[1]
    assert f"| {CLASSES[4]} | 50.00% | 50.00% | 50.00% | **99.00%** |" in text


@pytest.mark.slow
def test_pictures_are_drawn_where_there_is_something_to_compare(tmp_path):
    page.draw(three_methods()[:6], tmp_path)
    assert not list(tmp_path.iterdir())
    page.draw(three_methods(idle=True), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"tables-ranks.png", "tables-time.png"}


def test_the_page_is_what_the_records_say():
    made = page.page(page.load_records()) + own.sizes(Study(sizes.RECORDS))
    assert (page.DOCS / "tables.md").read_text(encoding="utf-8") == made


def test_the_page_says_what_piefs_knows_of_itself():
    about = {"gram_error_unbiased": 0.5, "gram_floor": 0.4, "coverage": [0.4, 0.8, 0.95]}
    records = [record("autoMpg", "piefs", **about), record("servo", "piefs", **about)]
    text = own.own(records)
    assert "median 1.25, at most 1.2 on 0% of the tables" in text
    assert "3.3 points" in text  # of 10, 0 and 0
    assert "| autoMpg | 40% | 80% | 95% |" in text


def test_tables_on_which_piefs_is_far_behind_are_named():
    scores = {"piefs": 0.86, "forest": 0.9}
    records = [record("heart", m, accuracy=s) for m, s in scores.items()]
    records += [record("crx", m, accuracy=0.9) for m in scores]
    assert "heart (4.0 behind random forest)." in page.behind(records, ["piefs", "forest"])


def test_a_measurement_of_many_rows_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "RECORDS", tmp_path / "sizes")
    monkeypatch.setitem(sizes.MEASURES, "few rows", (sizes.rows, 100))
    sizes.measure("few rows")
    found = Study(tmp_path / "sizes")["few rows"]
    assert found["seconds"] > 0
    assert found["accuracy"] > 0.5
    assert "| few rows |" in own.sizes({"few rows": found})
