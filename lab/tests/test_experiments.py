"""The experiments past the paper: data, statistics, and the page that is made of records."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_circles, make_moons

from lab.experiments import pictures
from lab.experiments.__main__ import STUDIES
from lab.experiments.bayes import accuracy_of_one, bayes_accuracy, log_densities
from lab.experiments.data import OTHER_CLASSES, OTHER_NUMBERS
from lab.experiments.labels import labelled_rows
from lab.experiments.records import recorded
from lab.experiments.report import corrected_t_test, headline, ordered, others_section, spread
from lab.experiments.signs import ALL_STEPS, COLUMNS, statistics
from lab.experiments.signs import measured as measured_signs
from lab.experiments.tables import gaps, paired
from piefs.training import diagnosis
from piefs.training.config import Settings
from piefs.training.diagnosis import RunRecord, findings
from reproduction.study import Study

ROOT = Path(__file__).parents[2]


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
        names = [run.record_name for run in runs()]
        assert len(names) == len(set(names)), study


def test_bayes_rule_is_right_where_the_noise_is_small_and_a_coin_in_the_middle():
    x, y = make_moons(2000, noise=0.1, random_state=0)
    assert bayes_accuracy("two-moons", x, y) > 0.995
    middle = log_densities("two-moons", np.array([[0.5, 0.25]]))
    assert middle[0, 0] == pytest.approx(middle[0, 1], abs=1e-6)


@pytest.mark.parametrize("coordinate", [0, 1])
def test_the_best_by_one_coordinate_is_what_bayes_rule_has_on_rows_of_it(coordinate):
    drawn = {
        "two-moons": make_moons(20_000, noise=0.1, random_state=0),
        "circles": make_circles(20_000, noise=0.05, factor=0.5, random_state=0),
    }
    for name, (x, y) in drawn.items():
        expected = accuracy_of_one(name, coordinate)
        assert 0.75 < expected < 0.85
        assert bayes_accuracy(name, x, y, (coordinate,)) == pytest.approx(expected, abs=0.01)


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


@pytest.mark.slow
def test_a_run_leaves_a_record_and_is_not_run_twice(tmp_path):
    call = [sys.executable, "-m", "lab.experiments", "others", "--dataset", "iris", "--seeds", "1"]
    call += ["--method", "random-forest"]
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PATH": "", "HOME": str(tmp_path)}
    said = [
        subprocess.run(
            call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    found = Study(tmp_path / "results/beyond/records/others")["iris/random-forest/0"]
    assert found["n_test"] == 45
    assert found["accuracy"] > 0.8
    assert "0 of 1 runs are done" in said[0]
    assert "1 of 1 runs are done" in said[1]


def test_a_record_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = iter([{"loss": 0.5}, {"loss": 0.7}])
    first = recorded("signs", "x", "some, run", 0, lambda: next(values))
    assert first["loss"] == 0.5
    assert first["versions"]
    assert recorded("signs", "x", "some, run", 0, lambda: next(values)) == first
    assert list(Study(tmp_path / "results/beyond/records/signs")) == ["x/some-run/0"]


def test_the_statistics_of_signs_are_what_findings_are_made_of():
    rows = [
        {"gram_error": 0.1, "loss_class": 0.2, "validation_loss": loss}
        for loss in np.linspace(0.35, 0.21, 20)
    ]
    raw = np.random.default_rng(0).normal(size=(50, 4))
    raw[:, 1] = 3.0
    evidence = RunRecord(
        Settings(steps_per_component=3750), rows, 4.0, raw, ((-9.0, 2.0),), 0.7, used_all_steps=True
    )
    found = statistics(evidence)
    assert {finding.kind for finding in findings(evidence)} == {
        *("dead-maps", "metric", "gram-error", "still-improving")
    }
    assert found["variation"] <= diagnosis.SAME_EVERYWHERE
    assert found["log_scale"] == 9.0 > diagnosis.LARGEST_LOG_SCALE
    assert found["gram"] == 1.0 > diagnosis.GRAM_SHARE
    assert found["raw_gram"] == 0.025 < diagnosis.RAW_GRAM_SHARE
    assert found["fall"] > diagnosis.STILL_FALLING
    assert found["gap"] == pytest.approx(0.01 / 0.7)
    assert found["rise"] == 0.0
    assert found.keys() == COLUMNS.keys()


@pytest.mark.slow
def test_a_fit_is_judged_by_what_it_keeps():
    task = OTHER_CLASSES["iris"](0)
    keywords = {"n_components": 2, "steps_per_component": 60, "hidden": (8,)}
    record = measured_signs(task, keywords | ALL_STEPS, shuffled=False)
    assert record["gram"] < 1e-6
    assert 0 < record["by_heart"] < 1.2


def test_a_data_set_that_ours_has_not_run_on_is_not_in_the_headline():
    """Else the best baseline would stand in our column."""
    forest = {"study": "main", "dataset": "mnist", "method": "random-forest", "accuracy": 0.9}
    assert "mnist" not in headline([forest])
    ours = forest | {"method": "piefs", "accuracy": 0.8}
    assert "| mnist | 80.00 | **90.00 (random-forest)** |" in headline([forest, ours])


def test_differences_are_paired_by_seed():
    reference = [record("x", "default", seed, accuracy) for seed, accuracy in ((0, 0.5), (1, 0.9))]
    found = [record("x", "other", seed, accuracy) for seed, accuracy in ((1, 0.93), (0, 0.52))]
    unpaired = record("x", "other", 2, 0.1)
    assert gaps([*found, unpaired], reference) == pytest.approx([3, 2])
    assert paired([*found, unpaired], reference, 2) == "+2.50 ± 0.50 [2]"
    assert paired([unpaired], reference) == "–"


def test_pictures_show_every_method_at_its_accuracy(tmp_path):
    runs = [
        record(dataset, method, seed, accuracy) | {"study": study}
        for study, dataset, method, accuracy in (
            ("labels", "mnist-10", "piefs", 0.8),
            ("labels", "mnist-100", "piefs", 0.9),
            ("labels", "mnist-10", "mlp", 0.7),
            ("geometry", "rotated-100", "off", 0.5),
            ("geometry", "irrelevant-100", "off", 0.6),
            ("ablation", "htru2", "default", 0.98),
            ("ablation", "htru2", "relu", 0.97),
        )
        for seed in range(2)
    ]
    lines = {line.get_label(): line for line in pictures.labels(runs).axes[0].containers}
    assert lines.keys() == {"piefs", "mlp"}
    np.testing.assert_allclose(lines["piefs"][0].get_xydata(), [[10, 80], [100, 90]])
    assert [axis.get_title() for axis in pictures.geometry(runs).axes] == ["rotated", "irrelevant"]
    seeds = pictures.ablation(runs).axes[0].lines[0]
    np.testing.assert_allclose(seeds.get_xdata(), [-1, -1])
    pictures.draw(runs, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "ablation.png",
        "labels.png",
        "geometry.png",
    }
