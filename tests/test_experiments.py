"""The experiments past the paper: data, statistics, and the page that is made of records."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.__main__ import STUDIES
from experiments.bayes import bayes_accuracy, log_densities
from experiments.data import OTHER_CLASSES, OTHER_NUMBERS
from experiments.labels import labelled_rows
from experiments.report import corrected_t_test, headline, ordered, others_section, spread
from scipy import stats
from sklearn.datasets import make_moons

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", [*OTHER_CLASSES, *OTHER_NUMBERS])
def test_splits_are_apart_and_change_with_their_number(name):
    task = (OTHER_CLASSES | OTHER_NUMBERS)[name](0)
    assert task.regression == (name in OTHER_NUMBERS)
    rows = {row.tobytes() for row in task.x}
    overlap = sum(row.tobytes() in rows for row in task.x_test)
    assert overlap <= 0.05 * len(task.x_test)  # iris has a few equal rows
    assert len(task.x_test) == pytest.approx(0.5 * len(task.x), rel=0.05)
    other = (OTHER_CLASSES | OTHER_NUMBERS)[name](1)
    assert not np.array_equal(task.x_test, other.x_test)


def test_every_run_has_a_record_of_its_own():
    for study, runs in STUDIES.items():
        paths = [run.path for run in runs()]
        assert len(paths) == len(set(paths)), study


def test_bayes_rule_is_right_where_the_noise_is_small_and_a_coin_in_the_middle():
    x, y = make_moons(2000, noise=0.1, random_state=0)
    assert bayes_accuracy("two-moons", x, y) > 0.995
    middle = log_densities("two-moons", np.array([[0.5, 0.25]]))
    assert middle[0, 0] == pytest.approx(middle[0, 1], abs=1e-6)


def test_without_overlap_the_corrected_test_is_the_plain_one():
    gaps = np.random.default_rng(0).normal(0.3, 1, 10)
    mean, p = corrected_t_test(gaps, 0.0)
    assert mean == pytest.approx(gaps.mean())
    assert p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    assert corrected_t_test(gaps, 0.5)[1] > p


def test_labels_are_drawn_for_every_class_and_fixed_by_the_seed():
    y = np.repeat([0, 1, 2], 50)
    rows = labelled_rows(y, 7, 3)
    np.testing.assert_array_equal(np.bincount(y[rows]), [7, 7, 7])
    np.testing.assert_array_equal(rows, labelled_rows(y, 7, 3))


def record(dataset, method, seed, accuracy):
    return {
        "study": "others",
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "accuracy": accuracy,
    }


def test_tables_show_means_spreads_and_the_best():
    records = [
        record("x", "mlp", 0, 0.8),
        record("x", "mlp", 1, 0.9),
        record("x", "piefs", 0, 0.95),
        record("x", "piefs", 1, 0.97),
    ]
    assert spread(records[:2], "accuracy") == "85.00 ± 7.07"
    assert spread([], "accuracy") == "–"
    text = others_section(records)
    assert "**96.00 ± 1.41**" in text
    assert "| 85.00 ± 7.07 |" in text
    assert [name for name, _ in ordered({"a": records[:2], "piefs": records[2:]})] == ["piefs", "a"]


def test_a_run_leaves_a_record_and_is_not_run_twice(tmp_path):
    call = [sys.executable, "-m", "experiments", "others", "--dataset", "iris", "--seeds", "1"]
    call += ["--method", "random-forest"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)}
    said = [
        subprocess.run(
            call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    path = tmp_path / "results/beyond/records/others/iris/random-forest/0.json"
    found = json.loads(path.read_text())
    assert found["n_test"] == 45
    assert found["accuracy"] > 0.8
    assert "0 of 1 runs are done" in said[0]
    assert "1 of 1 runs are done" in said[1]


def test_a_data_set_that_ours_has_not_run_on_is_not_in_the_headline():
    """Else the best baseline would stand in our column."""
    forest = {"study": "main", "dataset": "mnist", "method": "random-forest", "accuracy": 0.9}
    assert "mnist" not in headline([forest])
    ours = forest | {"method": "piefs", "accuracy": 0.8}
    assert "| mnist | **80.00** | 90.00 (random-forest) |" in headline([forest, ours])
