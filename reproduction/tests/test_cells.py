"""Names of runs, what their variants change, and rows dealt again for each seed."""

from collections import Counter
from dataclasses import replace

import pytest

from piefs import PIEFSTransformer
from piefs.errors import InputError
from reproduction.cells import DETERMINISTIC, LOW_DIMENSIONAL, Cell, cells_of
from reproduction.entries import Entry
from reproduction.published import ACCURACY, GRAM_ERROR
from reproduction.records import Records, Summary
from reproduction.runs import make
from reproduction.tables import tables
from reproduction.variants import FRESH_SPLIT, READINGS, VARIANTS


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


def settings_of(cell):
    """What a cell trains with."""
    model = PIEFSTransformer(**cell.keywords())
    settings = model.check_settings(7000, supervised=cell.mode == "supervised")
    metric = replace(settings.metric, hidden=settings.metric.widths)
    return replace(settings, metric=metric)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_can_be_trained(variant):
    settings = settings_of(Cell("two-moons", "piefs-diag", "supervised", variant, 0))
    plain = settings_of(Cell("two-moons", "piefs-diag", "supervised", "paper", 0))
    as_it_is = ("paper", FRESH_SPLIT, "metric-two-layers")  # two are the preset's, with labels
    assert (settings == plain) == (variant in as_it_is)


# --- fresh splits ------------------------------------------------------------------------------


def test_fresh_splits_are_other_rows_for_every_seed_and_none_the_fixed_ones():
    chosen = cells_of(["table-splits"])
    assert {cell.dataset for cell in chosen} == set(LOW_DIMENSIONAL)
    for method in (*DETERMINISTIC[:2], "piefs-trotter"):
        seeds = [c.split_seed for c in chosen if (c.dataset, c.method) == ("htru2", method)]
        assert sorted(seeds) == [1, 2, 3, 4, 5]
    assert {cell.split_seed for cell in cells_of() if cell.variant != FRESH_SPLIT} == {0}


def test_a_run_on_a_fresh_split_sees_other_rows(tmp_path):
    lda = "two-moons/lda/supervised"
    found = [
        make(Cell.parse(f"{lda}/{name}"), tmp_path).metrics
        for name in ("paper/0", "paper/1", f"{FRESH_SPLIT}/0", f"{FRESH_SPLIT}/1")
    ]
    assert [metrics["split_seed"] for metrics in found] == [0, 0, 1, 2]
    fixed, again, *fresh = (metrics["log_loss"]["train"] for metrics in found)
    assert fixed == again
    assert len({fixed, *fresh}) == 3


def test_rows_that_come_cut_are_not_dealt_anew():
    with pytest.raises(InputError, match="cifar10-embedding comes with its splits"):
        cells_of([f"cifar10-embedding/piefs-off/supervised/{FRESH_SPLIT}/0"])


@pytest.mark.parametrize(
    ("ours", "variance"),
    [
        (Summary(99.0, 0.3, 5), 0.3**2),
        (Summary(99.0, 0.0, 2), 99 * 1 / 1500),  # seeds that tie by chance
        (Summary(99.0, 0.0, 1), 99 * 1 / 1500),  # one has no spread
    ],
)
def test_rows_that_are_dealt_anew_are_averaged_with_the_seeds(ours, variance):
    z = Entry(ours, (98.0, 0.0), n_rows=1500, is_dealt_anew=True).z
    papers = 98 * 2 / 1500
    assert z == pytest.approx(1 / (variance / ours.n_seeds + papers) ** 0.5, rel=1e-3)


def test_fresh_splits_stand_beside_the_papers_number_on_the_rows_that_it_reports(tmp_path):
    for method in ("random-forest", "piefs-off"):
        cell = Cell("htru2", method, "supervised", FRESH_SPLIT, 0)
        metrics = {"accuracy": {"validation": 0.98, "test": 0.97}}
        Records(tmp_path).write(cell, metrics)
    (table,) = [t for t in tables(Records(tmp_path)) if t.name == "splits"]
    rows = {label: dict(zip(table.columns, row, strict=True)) for label, row in table.rows}
    assert rows["HTRU2, validation"]["random-forest"].paper == (98.16, 0.28)
    assert rows["HTRU2, validation"]["random-forest"].ours.mean == pytest.approx(98)
    assert rows["HTRU2, test"]["random-forest"].paper is None
    assert rows["HTRU2, test"]["piefs-off"].paper == (97.90, 0.15)
    assert rows["HTRU2, test"]["piefs-off"].is_dealt_anew


# --- names that mean nothing ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "htru2/piefs-diag/supervised/metric-two-layers/0",  # the preset's own, with labels
        "htru2/piefs-off/supervised/metric-three-layers/0",
        "htru2/piefs-off/unsupervised/anisotropy/0",
        "mnist/svm/supervised/paper/0",
    ],
)
def test_what_a_method_has_not_cannot_be_varied(name):
    with pytest.raises(InputError, match="is no run of the grid"):
        cells_of([name])


def test_steps_of_a_variant_are_kept_where_the_paper_has_more_of_them():
    fewer = Cell("cifar10-embedding", "piefs-trotter", "supervised", "maps-3", 0).keywords()
    assert fewer["n_components"] * fewer["steps_per_component"] == 60_000


# --- readings ----------------------------------------------------------------------------------


def test_every_other_reading_is_tried_where_it_differs_from_ours():
    tried = [cell for cell in cells_of(["table-readings"]) if cell.variant in READINGS]
    assert {cell.variant for cell in tried} == set(READINGS)
    for cell in tried:
        both = (cell, replace(cell, variant="paper"))
        otherwise, ours = (settings_of(one) for one in both)
        assert otherwise != ours, cell


def test_the_other_reading_stands_beside_ours_and_the_paper(tmp_path):
    for variant, accuracy in (("paper", 0.98), ("metric-three-layers", 0.97)):
        cell = Cell("htru2", "piefs-trotter", "supervised", variant, 0)
        metrics = {"accuracy": {"test": accuracy}, "gram_error_batch": 0.2}
        Records(tmp_path).write(cell, metrics)
    (table,) = [t for t in tables(Records(tmp_path)) if t.name == "readings"]
    (row,) = [row for label, row in table.rows if "HTRU2, trotter" in label]
    entries = dict(zip(table.columns, row, strict=True))
    assert entries["accuracy, ours"].ours.mean == pytest.approx(98)
    assert entries["accuracy, otherwise"].ours.mean == pytest.approx(97)
    assert entries["accuracy, otherwise"].paper == (97.92, 0.10)
    assert entries["Gram, otherwise"].paper == (0.03, None)
