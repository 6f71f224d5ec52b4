"""Numbers beside the paper's, tables, and the pages."""

import csv
import io
from html import escape
from pathlib import Path

import pytest

from faults import full_disk
from piefs.core.weighting import Dampened, Static
from piefs.errors import StorageError
from reproduction import figures
from reproduction.cells import DATASETS, ITEMS, Cell, cells_of
from reproduction.deviations import deviations
from reproduction.entries import Entry, gram_entry
from reproduction.ledger import CLAIMS, ledger
from reproduction.overview import COMPONENTS
from reproduction.published import reported_split
from reproduction.records import Records, Summary, summaries
from reproduction.report import write_report
from reproduction.runs import baseline_of
from reproduction.tables import tables
from reproduction.text import SUMMARY_COLUMNS, markdown, summary_csv

ROOT = Path(__file__).parents[2]
MOONS = Cell("two-moons", "piefs-off", "supervised", "paper", 0)


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


# --- the report


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
