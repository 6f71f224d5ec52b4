"""Runs of the grid, one and many, and how long they may still take."""

from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from piefs.data import load as load_data
from reproduction.cells import Cell
from reproduction.grid import BEFOREHAND, Progress, expected_seconds, run_grid
from reproduction.records import Records
from reproduction.runs import _data, make, work
from reproduction.tables import tables

MOONS = Cell("two-moons", "piefs-off", "supervised", "paper", 0)
FOREST = Cell("two-moons", "random-forest", "supervised", "paper", 0)


def test_a_record_holds_settings_versions_scores_and_history(results):
    record = Records(results / "records").load(MOONS)
    assert {"config", "versions", "accuracy", "gram_error", "energies"} <= set(record.metrics)
    assert set(record.metrics["accuracy"]) == {"train", "validation", "test"}
    assert record.metrics["cell"] == str(MOONS)
    assert np.shape(record.metrics["gram_matrix"]["validation"]) == (3, 3)
    assert record.history()[-1]["map"] == 3
    with np.load(Records(results / "records").plane(MOONS)) as plane:
        assert plane["phi1"].shape == plane["margin"].shape == (120, 120)


def test_without_labels_z_scored_coordinates_are_probed_too(results):
    records = Records(results / "records")
    cell = Cell("two-moons", "piefs-diag", "unsupervised", "paper", 0)
    probed = records.load(cell).metrics["accuracy_standardized_probe"]
    assert set(probed) == {"train", "validation", "test"}
    assert "accuracy_standardized_probe" not in records.load(MOONS).metrics
    (table,) = [t for t in tables(list(records)) if t.name == "unsupervised-standardized"]
    entry = dict(table.rows)["Two Moons"][1]
    assert entry.ours.mean == pytest.approx(100 * probed["test"])


def test_no_model_and_no_unfinished_run_is_left_behind(results):
    assert not any((results / "running").rglob("*.safetensors"))
    records = {path.name for path in (results / "records").iterdir()}
    assert {"two-moons.jsonl", "two-moons.parquet", "planes"} <= records


def test_a_method_without_probabilities_has_its_accuracy(tmp_path):
    svm = work(Cell("two-moons", "svm", "supervised", "paper", 0), tmp_path, quick=True)
    assert svm["accuracy"]["test"] > 0.95
    assert svm["log_loss"]["test"] is None


def test_a_data_set_is_read_once_for_cell_after_cell(tmp_path, monkeypatch):
    read = []
    _data.cache_clear()
    monkeypatch.setattr(
        "reproduction.runs.load", lambda *which: read.append(which) or load_data(*which)
    )
    for name in ("circles/lda", "circles/pca-lr", "two-moons/lda"):
        make(Cell.parse(f"{name}/supervised/paper/0"), tmp_path)
    assert [which[0] for which in read] == ["circles", "two-moons"]


@pytest.mark.slow
def test_a_second_grid_does_only_what_is_missing(results):
    before = Records(results / "records").load(MOONS).metrics
    lda = Cell("two-moons", "lda", "supervised", "paper", 0)
    other = Cell("circles", "lda", "supervised", "paper", 0)
    progress = run_grid([MOONS, FOREST, lda, other], results, jobs=2, quick=True)
    assert set(progress.done) == {lda, other}
    assert Records(results / "records").load(MOONS).metrics == before


@pytest.mark.slow
def test_a_cell_that_fails_is_told_and_does_not_stop_the_others(tmp_path):
    missing = Cell("mnist", "lda", "supervised", "paper", 0)
    fine = Cell("circles", "lda", "supervised", "paper", 0)
    progress = run_grid(
        [missing, fine], tmp_path, jobs=1, quick=True, data_dir=tmp_path / "nowhere"
    )
    assert progress.done == [fine]
    assert list(progress.failed) == [missing]
    assert "data set 'mnist' not found" in progress.failed[missing]
    (log,) = (tmp_path / "running").glob("*.log")
    assert "mnist" in log.name
    assert "not found" in log.read_text()


@pytest.mark.slow
def test_work_resumes_a_run_that_was_cut_off(tmp_path, monkeypatch):
    import piefs.app.run as fit

    whole = work(MOONS, tmp_path / "whole", quick=True)

    def crash(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "evaluate", crash)
    monkeypatch.setattr(fit, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        work(MOONS, tmp_path / "cut", quick=True)
    monkeypatch.undo()
    assert not Records(tmp_path / "cut" / "records").has(MOONS)
    resumed = work(MOONS, tmp_path / "cut", quick=True)
    assert resumed["accuracy"] == whole["accuracy"]
    assert resumed["energies"] == whole["energies"]


def test_a_finished_run_whose_record_was_not_written_is_not_run_again(tmp_path, monkeypatch):
    made = make(MOONS, tmp_path / "running", quick=True)
    assert not (tmp_path / "running" / str(MOONS) / "figures").exists()  # nobody would see them
    monkeypatch.setattr("reproduction.runs.run", None)
    assert work(MOONS, tmp_path, quick=True)["accuracy"] == made.metrics["accuracy"]
    assert not (tmp_path / "running" / str(MOONS)).exists()


RECORDS = Path(__file__).parents[2] / "results" / "records"
TROTTER = Cell("mnist", "piefs-trotter", "supervised", "paper", 0)


class Clock:
    """Time that passes when it is told to."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_cells_cost_in_proportion_what_they_are_expected_to():
    """Whatever the machine: only ratios matter once cells are done."""
    taken = defaultdict(list)
    for record in Records(RECORDS):
        if record.cell.is_piefs and record.cell.variant == "paper":
            ratio = record.metrics["seconds"] / expected_seconds(record.cell)
            taken[record.cell.dataset, record.cell.method].append(ratio)
    ratios = [median(found) for found in taken.values()]
    assert len(ratios) == 15
    assert max(ratios) < 3 * median(ratios)
    assert min(ratios) > median(ratios) / 3


def test_tiny_budgets_take_seconds_whatever_the_cell():
    assert max(expected_seconds(cell, quick=True) for cell in (FOREST, MOONS, TROTTER)) < 10


def test_a_cell_counts_for_what_it_costs(clock):
    progress = Progress({FOREST: 10.0, MOONS: 90.0, TROTTER: 900.0}, clock=clock)
    for cell in (FOREST, MOONS):
        progress.begin(cell)
        progress.end(cell)
    assert progress.n_ended == 2
    assert progress.share == pytest.approx(0.1)
    progress.begin(TROTTER)
    progress.end(TROTTER, "a reason")
    assert progress.share == pytest.approx(1)
    assert progress.seconds_left == 0


def test_before_anything_is_done_time_is_as_expected_of_so_many_at_a_time(clock):
    progress = Progress({FOREST: 600.0, MOONS: 600.0, TROTTER: 600.0}, clock=clock)
    assert progress.seconds_left == pytest.approx(1800)
    progress.begin(FOREST)
    progress.begin(MOONS)
    assert progress.seconds_left == pytest.approx(900)


def test_time_goes_on_while_a_long_cell_is_under_way(clock):
    progress = Progress({TROTTER: 1000.0}, clock=clock)
    progress.begin(TROTTER)
    clock.now += 250
    assert progress.share == pytest.approx(0.25)
    assert progress.seconds_left == pytest.approx(750)


def test_a_cell_that_takes_longer_than_expected_is_not_done_for_that(clock):
    progress = Progress({TROTTER: 1000.0}, clock=clock)
    progress.begin(TROTTER)
    clock.now += 10_000
    assert progress.share < 1
    assert progress.seconds_left > 0


def test_a_slow_machine_is_believed_after_a_while(clock):
    progress = Progress({MOONS: 100 * BEFOREHAND, TROTTER: 100.0}, clock=clock)
    progress.begin(MOONS)
    clock.now += 300 * BEFOREHAND
    progress.end(MOONS)
    progress.begin(TROTTER)
    clock.now += 150
    assert progress.seconds_left == pytest.approx(150, rel=0.05)


def test_the_end_does_not_come_before_that_of_the_longest_cell(clock):
    progress = Progress({FOREST: 10.0, MOONS: 10.0, TROTTER: 1000.0}, clock=clock)
    progress.begin(FOREST)
    progress.begin(MOONS)
    assert progress.seconds_left == pytest.approx(1000)
