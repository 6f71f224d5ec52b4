import csv
import io
from collections import Counter
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

from faults import full_disk
from piefs.core.weighting import Dampened, Static
from piefs.data import load as load_data
from piefs.errors import InputError, StorageError
from reproduction import figures
from reproduction.cells import DATASETS, DETERMINISTIC, ITEMS, Cell, cells_of
from reproduction.deviations import deviations
from reproduction.entries import Entry, gram_entry
from reproduction.grid import run_grid
from reproduction.ledger import CLAIMS, ledger
from reproduction.overview import COMPONENTS
from reproduction.published import ACCURACY, GRAM_ERROR, reported_split
from reproduction.records import Records, Summary, summaries
from reproduction.report import write_report
from reproduction.runs import _data, baseline_of, make, work
from reproduction.tables import tables
from reproduction.text import SUMMARY_COLUMNS, markdown, summary_csv

ROOT = Path(__file__).parents[2]
MOONS = Cell("two-moons", "piefs-off", "supervised", "paper", 0)
FOREST = Cell("two-moons", "random-forest", "supervised", "paper", 0)


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", cells_of()[::17], ids=str)
def test_a_cells_name_names_it(cell):
    assert Cell.parse(str(cell)) == cell


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mnist", "dataset/method/mode/variant/seed"),
        ("mnist/piefs-off/supervised/paper/x", "dataset/method/mode/variant/seed"),
        ("mnits/piefs-off/supervised/paper/0", "no dataset 'mnits'"),
        ("mnist/piefs-on/supervised/paper/0", "no method 'piefs-on'"),
        ("mnist/piefs-off/supervised/papers/0", "no variant 'papers'"),
        ("mnist/piefs-off/../paper/0", "no mode '..'"),
    ],
)
def test_a_wrong_name_is_refused_with_what_there_is(name, reason):
    with pytest.raises(InputError, match=reason):
        Cell.parse(name)


def test_every_number_of_the_paper_has_cells_behind_it():
    keys = {(c.dataset, c.method, c.mode, c.variant) for c in cells_of()}
    keys |= {(c.dataset, c.method, c.mode, c.variant) for c in cells_of(datasets=["cifar10-r18"])}
    assert set(ACCURACY) <= keys
    assert set(GRAM_ERROR) <= keys


def test_supervised_cells_have_five_seeds_and_those_without_labels_three():
    seeds = {}
    for cell in cells_of(["table-main", "table-unsupervised"]):
        seeds.setdefault((cell.dataset, cell.method, cell.mode, cell.variant), set()).add(cell.seed)
    assert seeds["mnist", "piefs-trotter", "supervised", "paper"] == set(range(5))
    assert seeds["mnist", "piefs-trotter", "unsupervised", "paper"] == set(range(3))
    assert seeds["mnist", "logistic-regression", "supervised", "paper"] == {0}


def test_a_part_can_be_chosen():
    chosen = cells_of(["table-main"], datasets=["mnist"], n_seeds=2)
    assert {cell.dataset for cell in chosen} == {"mnist"}
    assert {cell.seed for cell in chosen} == {0, 1}
    for wrong in ({"items": ["table-mian"]}, {"items": [], "datasets": ["minst"]}):
        with pytest.raises(InputError, match="there are"):
            cells_of(**wrong)


def test_a_cell_can_be_chosen_by_its_name_whatever_set_its_kind_was_planned_for():
    planned = "two-moons/piefs-off/supervised/paper/0"
    not_planned = "htru2/piefs-trotter/supervised/batch-256/7"
    assert cells_of([planned, not_planned]) == list(map(Cell.parse, (planned, not_planned)))
    assert len(cells_of(["figure-geometry", planned])) == len(cells_of(["figure-geometry"]))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mnist/piefs-of/supervised/paper/0", "no method 'piefs-of'; there are piefs-off"),
        ("mnist/svm/supervised/maps-3/0", "is no run of the grid: svm has supervised/paper"),
        ("mnist/neuralef/supervised/paper/0", "neuralef has unsupervised/fresh-split, "),
        ("htru2/piefs-off/unsupervised/t-class-2/0", "piefs-off has supervised/at-once"),
    ],
)
def test_a_cell_that_means_nothing_is_not_made(name, reason):
    with pytest.raises(InputError, match=reason):
        cells_of([name])


def test_whatever_chance_decides_is_planned_with_two_seeds_at_least():
    seeds = Counter(replace(cell, seed=0) for cell in cells_of())
    single = {cell.method for cell, n_seeds in seeds.items() if n_seeds == 1}
    assert single == set(DETERMINISTIC)


def test_the_papers_own_embedding_is_used_where_it_is_asked_for():
    assert "cifar10-r18" not in {cell.dataset for cell in cells_of()}
    chosen = cells_of(["table-main"], datasets=["cifar10-r18"], n_seeds=1)
    assert {cell.dataset for cell in chosen} == {"cifar10-r18"}
    assert "piefs-trotter" in {cell.method for cell in chosen}


def test_the_cheap_cells_come_first():
    order = cells_of(["table-main"])
    kinds = [(cell.method == "piefs-trotter", cell.dataset == "mnist") for cell in order]
    assert kinds.index((True, True)) > max(
        i for i, cell in enumerate(order) if cell.dataset in ("two-moons", "circles", "htru2")
    )


def test_trotter_on_embeddings_has_twice_the_steps():
    def steps(method):
        cell = Cell("cifar10-embedding", method, "supervised", "paper", 0)
        return cell.keywords().get("steps_per_component")

    assert steps("piefs-trotter") == 7500
    assert steps("piefs-diag") is None


# --- running -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Tiny runs of ours, with and without labels, and of a baseline."""
    folder = tmp_path_factory.mktemp("results")
    for cell in (MOONS, FOREST, Cell("two-moons", "piefs-diag", "unsupervised", "paper", 0)):
        work(cell, folder, quick=True)
    return folder


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


# --- tables ------------------------------------------------------------------------------------


def test_difference_is_in_standard_errors_of_both():
    entry = Entry(Summary(96.0, 0.3, 4), (95.0, 0.5))
    assert entry.z == pytest.approx(1 / (0.3**2 / 4 + 0.5**2 / 5 + 0.05**2) ** 0.5)
    assert Entry(Summary(96.0, 0.3, 4), (95.0, 0.5), comparable=False).z is None
    assert Entry(None, (95.0, 0.5)).z is None


def test_the_draw_of_the_held_out_rows_counts():
    summary, paper = Summary(100.0, 0.0, 5), (99.87, 0.0)
    assert abs(Entry(summary, paper).z) > 2
    assert Entry(summary, paper, n_rows=1500).z == pytest.approx(
        0.13 / (99.87 * 0.13 / 1500) ** 0.5, rel=0.01
    )


def test_the_markdown_page_says_how_far_apart_numbers_are(tmp_path):
    for dataset in ("htru2", "cifar10-embedding"):
        cell = Cell(dataset, "piefs-off", "supervised", "paper", 0)
        Records(tmp_path).write(cell, {"accuracy": {"test": 0.97}})
    (main,) = [markdown(t) for t in tables(Records(tmp_path)) if t.name == "main-test"]
    assert "| 97.00 [1] (97.90 ± 0.15; -2.0 s.e.) |" in main
    assert "| 97.00 [1] (85.50 ± 0.53) |" in main  # of other data


def test_hollow_points_of_the_scatter_are_the_papers(tmp_path):
    for dataset in ("mnist", "cifar10-embedding"):
        cell = Cell(dataset, "piefs-off", "supervised", "paper", 0)
        metrics = {"accuracy": {"test": 0.9}, "gram_error_batch": 0.5}
        Records(tmp_path).write(cell, metrics)
    points = figures.scatter(Records(tmp_path)).axes[0].collections
    hollow = [p.get_offsets().tolist() for p in points if not len(p.get_facecolors())]
    filled = [p.get_offsets().tolist() for p in points if len(p.get_facecolors())]
    assert hollow == [[[0.12, 95.41]]]  # the embedding's are of other data
    assert filled == [[[0.5, 90.0]]] * 2


def test_accuracies_are_far_by_standard_errors_and_gram_errors_by_a_factor():
    assert Entry(Summary(96.0, 0.3, 4), (95.0, 0.5)).is_far
    assert Entry(Summary(95.1, 0.3, 4), (95.0, 0.5)).is_far is False
    assert Entry(Summary(95.1, 0.3, 4)).is_far is None
    scattered = Summary(78.0, 30.0, 2)  # within two standard errors of anything
    assert Entry(scattered, (78.0, 1.5)).is_far
    assert Entry(scattered, (78.0, 30.0)).is_far is False
    for ours, is_far in ((0.21, True), (0.19, False), (0.051, False), (0.049, True)):
        assert gram_entry("mnist", Summary(ours, 0.0, 2), (0.1, None)).is_far is is_far
    assert gram_entry("cifar10-embedding", Summary(9.0, 0.0, 2), (0.1, None)).is_far is None
    assert gram_entry("mnist", None, (0.1, None)).is_far is None


def test_spread_of_none_is_taken_for_rounding():
    assert Entry(Summary(99.87, 0.0, 5), (99.87, 0.0)).z == 0
    assert abs(Entry(Summary(99.88, 0.0, 5), (99.87, 0.0)).z) < 1


def test_standard_deviation_is_that_of_a_sample():
    assert Summary.of([1.0, 3.0]) == Summary(2.0, pytest.approx(2**0.5), 2)
    assert Summary.of([1.0]) == Summary(1.0, 0.0, 1)


def test_classical_baselines_of_small_sets_are_the_papers_on_validation_rows():
    assert reported_split("htru2", "random-forest") == "validation"
    assert reported_split("mnist", "random-forest") == "official"
    assert reported_split("cifar10-r18", "random-forest") == "test"
    assert reported_split("htru2", "neuralef") == reported_split("htru2", "piefs-off") == "test"


def test_fewer_maps_have_as_many_steps_in_all_and_the_papers_numbers_beside_them(results):
    for n_maps in (3, 4, 8):
        cell = Cell("circles", "piefs-off", "unsupervised", f"maps-{n_maps}", 0)
        assert cell in cells_of(["table-maps"])
        keywords = cell.keywords()
        assert keywords["n_components"] * keywords["steps_per_component"] == 60_000
    (table,) = [t for t in tables(Records(results / "records")) if t.name == "maps"]
    rows = dict(table.rows)
    entries = dict(zip(table.columns, rows["Two Moons, off, supervised"], strict=True))
    assert entries["accuracy, K = 16"].ours.n_seeds == 1
    assert entries["accuracy, K = 3"].ours is None
    assert {entries[f"accuracy, K = {k}"].paper for k in (3, 4, 8, 16)} == {(99.87, 0.0)}
    assert entries["Gram, K = 4"].paper == (0.16, None)


@pytest.mark.parametrize("mode", ["supervised", "unsupervised"])
@pytest.mark.parametrize("factor", [0.1, 0.02])
def test_a_smaller_weight_of_the_energy_leaves_the_other_weights_as_they_are(mode, factor):
    cell = Cell("circles", "piefs-off", mode, f"smoothness-{factor}", 0)
    assert cell in cells_of(["table-smoothness"])
    orth, class_, mde = (Dampened() if mode == "supervised" else Static(1, 0, 1))(0.05, 0.1)
    assert cell.keywords()["weighting"](0.05, 0.1) == (orth, class_, factor * mde)


def test_accuracies_by_the_weight_of_the_energy_stand_beside_the_papers_one_number(tmp_path):
    cell = Cell("circles", "piefs-off", "unsupervised", "smoothness-0.02", 0)
    metrics = {"accuracy": {"test": 1.0}, "gram_error_batch": 0.9}
    Records(tmp_path).write(cell, metrics)
    (table,) = [t for t in tables(Records(tmp_path)) if t.name == "smoothness"]
    row = dict(table.rows)["Circles, off, unsupervised"]
    entries = dict(zip(table.columns, row, strict=True))
    assert entries["accuracy, w_mde × 0.02"].ours.mean == pytest.approx(100)
    assert entries["Gram, w_mde × 0.02"].ours.mean == pytest.approx(0.9)
    assert entries["accuracy, w_mde × 0.1"].ours is None
    assert {entries[f"Gram, w_mde × {w}"].paper for w in (1, 0.1, 0.02)} == {(0.94, None)}


def test_the_readout_and_the_sequence_are_taken_away_like_the_other_components(tmp_path):
    off = "circles/piefs-off"
    for name, right in [("unsupervised/paper", 0.6), ("supervised/at-once", 0.9)]:
        cell = Cell.parse(f"{off}/{name}/0")
        assert cell in cells_of(["table-components"])
        Records(tmp_path).write(cell, {"accuracy": {"test": right}})
    (table,) = [t for t in tables(Records(tmp_path)) if t.name == "components"]
    entries = dict(zip(table.columns, dict(table.rows)["Circles"], strict=True))
    taken = {"at-once", "no-orthogonality", "no-readout", "no-smoothness", "no-gate"}
    assert entries.keys() == {"paper", *taken}
    assert entries["no-readout"].ours.mean == pytest.approx(60)
    assert entries["at-once"].ours.mean == pytest.approx(90)
    assert entries["paper"].ours is None


@pytest.mark.parametrize(("variant", "n_maps"), [("paper", 16), ("maps-4", 4)])
def test_neuralef_has_as_many_maps_as_its_variant_says(variant, n_maps):
    cell = Cell("two-moons", "neuralef", "unsupervised", variant, 0)
    assert cell in cells_of(["table-maps"])
    found = [v for k, v in baseline_of(cell).get_params().items() if k.endswith("n_components")]
    assert found == [n_maps]


def test_mnists_official_images_are_both_halves_and_the_same_for_all(tmp_path):
    records = Records(tmp_path)
    forest = Cell("mnist", "random-forest", "supervised", "paper", 0)
    records.write(forest, {"accuracy": {"train": 1.0, "validation": 0.96, "test": 0.98}})
    (main, *_) = tables(records)
    rows = dict(main.rows)
    column = main.columns.index("random-forest")
    assert rows["MNIST"][column].ours.mean == pytest.approx(98)
    assert rows["MNIST"][column].paper is None
    official = rows["MNIST, all 10,000"][column]
    assert official.ours.mean == pytest.approx(97)
    assert official.paper == (97.07, 0.03)
    assert official.n_rows is None
    # One seed has the paper's spread; implementations differ on the same rows.
    assert official.z == pytest.approx(-0.07 / (0.03**2 * (1 + 1 / 5) + 0.05**2) ** 0.5)
    written = list(csv.DictReader(io.StringIO(summary_csv(records))))
    assert [r["split"] for r in written if r["paper_mean"]] == ["official"]


def test_another_probe_has_no_number_of_the_papers_beside_it(results):
    (table,) = [t for t in tables(Records(results / "records")) if "standardized" in t.name]
    assert {entry.paper for _, entries in table.rows for entry in entries} == {None}


def test_summary_has_its_columns_and_the_papers_numbers(results):
    rows = list(csv.DictReader(io.StringIO(summary_csv(Records(results / "records")))))
    assert list(rows[0]) == list(SUMMARY_COLUMNS)
    ours = [r for r in rows if r["method"] == "piefs-off" and r["split"] == "test"]
    assert [(r["paper_mean"], r["n_seeds"]) for r in ours] == [("99.87", "1")]
    accuracy = Records(results / "records").load(MOONS).metrics["accuracy"]["test"]
    assert float(ours[0]["mean"]) == pytest.approx(100 * accuracy, abs=1e-3)
    forest = {r["split"]: r["paper_mean"] for r in rows if r["method"] == "random-forest"}
    assert forest == {"train": "", "validation": "99.89", "test": ""}


# --- the report --------------------------------------------------------------------------------


def test_a_full_disk_is_not_taken_for_damaged_records(results):
    with full_disk(1000), pytest.raises(StorageError, match=r"\.png cannot be written"):
        write_report(results)


def test_report_shows_tables_figures_and_every_claim(results):
    page, short = write_report(results)
    text = page.read_text()
    assert all(escape(sentence) in text for sentence in short)
    for table in tables(Records(results / "records")):
        assert f"id='{table.name}'" in text
    for figure in ("geometry", "maps", "accuracy", "residual", "maps-kept", "scatter"):
        assert f"id='figure-{figure}'" in text
        assert (results / "figures" / f"{figure}.svg").exists()
    assert text.count("data:image/png;base64,") == 6  # MNIST's Gram matrices are not there
    assert all(quote.split(",")[0].replace("'", "&#x27;") in text for quote, _, _ in CLAIMS)
    assert "http://" not in text
    assert "https://" not in text
    summary = (results / "README.md").read_text()
    assert "piefs-off" in summary
    for component, *_ in COMPONENTS:
        assert f"<td class=text>{component}</td>" in text
        assert f"| {component} |" in summary
    assert "Deng et al. (2022) report 84.98" in text


def test_claims_without_their_runs_are_open(tmp_path):
    claims = ledger(Records(tmp_path))
    identities = [claim for claim in claims if claim.holds is not None]
    assert {claim.where for claim in identities} == {"Sec. 2.4"}
    assert len(claims) == len(CLAIMS)
    assert deviations(Records(tmp_path)) == []


def test_committed_records_are_readable_and_named_rightly():
    found = list(Records(ROOT / "results" / "records"))
    assert found
    for record in found:
        assert record.cell.dataset in DATASETS
        assert record.metrics["config"]["seed"] == record.cell.seed
    keys = summaries(found)
    assert keys["two-moons", "piefs-off", "supervised", "paper"].n_seeds == 5


def test_every_item_has_cells():
    assert all(make(2) for make in ITEMS.values())
