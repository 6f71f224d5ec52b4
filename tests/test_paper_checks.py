"""Checks of the paper's claims on records that are made up, so that each can go either way."""

from typing import Any

import pytest

from piefs.paper import checks
from piefs.paper.cells import DATASETS, Cell
from piefs.paper.checks import Found
from piefs.paper.records import Records


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path)


def put(records: Records, name: str, accuracy: float = 0.9, **metrics: Any) -> None:
    """A record of one run; `history` becomes its file."""
    history = metrics.pop("history", None)
    files = {}
    if history is not None:
        lines = [",".join(history[0]), *(",".join(map(str, row.values())) for row in history)]
        files["history.csv"] = "\n".join(lines).encode()
    splits = dict.fromkeys(("train", "validation", "test"), accuracy)
    records.write(Cell.parse(name), {"accuracy": splits, **metrics}, files)


def put_metrics(records: Records, dataset: str, mode: str, *accuracies: float, **more: Any) -> None:
    for metric, accuracy in zip(("off", "diag", "trotter"), accuracies, strict=True):
        put(records, f"{dataset}/piefs-{metric}/{mode}/paper/0", accuracy, **more)


OFF = "mnist/piefs-off/supervised/paper/0"


@pytest.mark.parametrize(("weights", "holds"), [((0.1, 0.4), True), ((0.4, 0.1), False)])
def test_smoothness_comes_last_if_its_weight_grows_within_a_map(records, weights, holds):
    rows = [{"step": i, "map": 1, "w_mde": w} for i, w in enumerate(weights)]
    put(records, OFF, history=rows)
    text, verdict = checks.smoothness_comes_last(Found(records))
    assert verdict is holds
    assert f"MNIST {weights[0]:.2f} → {weights[1]:.2f}" in text


@pytest.mark.parametrize(("last", "holds"), [(0.3, True), (0.1, False)])
def test_a_residual_that_ends_above_its_lowest_has_risen(records, last, holds):
    values = (0.5, 0.1, last)
    rows = [{"step": i, "map": 1, "gram_residual": g} for i, g in enumerate(values)]
    put(records, OFF, history=rows)
    assert checks.residual_rises(Found(records))[1] is holds


@pytest.mark.parametrize(("power", "holds"), [(1, True), (0, False)])
def test_the_gap_to_the_population_falls_as_one_over_the_batch(records, power, holds):
    for variant, size in (
        *(("batch-256", 256), ("batch-1024", 1024)),
        *(("paper", 2048), ("batch-4096", 4096)),
    ):
        assert checks.gap_falls_with_batch(Found(records)) == checks.NOT_RUN
        put(
            records,
            f"mnist/piefs-off/supervised/{variant}/0",
            gram_error_batch=0.05 + 200 / size**power,
            gram_error_unbiased={"train": 0.05},
        )
    text, verdict = checks.gap_falls_with_batch(Found(records))
    assert verdict is holds
    assert ("256: 200" in text) is holds


@pytest.mark.parametrize(("diag", "holds"), [(0.94, True), (0.96, False)])
@pytest.mark.parametrize("mode", ["supervised", "unsupervised"])
def test_off_is_best_where_neither_metric_is_ahead(records, diag, holds, mode):
    check = checks.off_is_best(mode, "mnist")
    assert check(Found(records)) == checks.NOT_RUN
    put_metrics(records, "mnist", mode, 0.95, diag, 0.93)
    assert check(Found(records))[1] is holds


@pytest.mark.parametrize(("trotter", "holds"), [(0.945, True), (0.93, False)])
def test_metrics_hardly_matter_if_they_are_within_a_point(records, trotter, holds):
    put_metrics(records, "mnist", "supervised", 0.95, 0.949, trotter, gram_error_batch=0.2)
    text, verdict = checks.metrics_hardly_matter(Found(records))
    assert verdict is holds
    assert "Gram errors 0.20 to 0.20" in text


@pytest.mark.parametrize(("rational", "holds"), [(0.93, True), (0.95, False)])
def test_other_dampenings_must_both_be_behind(records, rational, holds):
    put(records, OFF, 0.95)
    put(records, "mnist/piefs-off/supervised/weighting-rational/0", rational)
    assert checks.other_dampenings(Found(records)) == checks.NOT_RUN
    put(records, "mnist/piefs-off/supervised/weighting-polynomial/0", 0.94)
    assert checks.other_dampenings(Found(records))[1] is holds


@pytest.mark.parametrize(("n_ahead", "holds"), [(4, True), (3, False)])
def test_neuralef_is_matched_on_four_of_five_sets_or_not_at_all(records, n_ahead, holds):
    for i, dataset in enumerate(DATASETS):
        assert checks.matches_neuralef(Found(records))[1] is None
        put(records, f"{dataset}/neuralef/unsupervised/paper/0", 0.85)
        ours = 0.9 if i < n_ahead else 0.8
        put(records, f"{dataset}/piefs-off/unsupervised/paper/0", ours)
    assert checks.matches_neuralef(Found(records))[1] is holds


@pytest.mark.parametrize(("penalised", "holds"), [(0.93, True), (0.7, False)])
def test_a_penalty_restores_what_it_brings_nearer_to_off(records, penalised, holds):
    put_metrics(records, "htru2", "unsupervised", 0.95, 0.8, 0.8)
    assert checks.penalty_restores(Found(records)) == checks.NOT_RUN
    for metric in ("diag", "trotter"):
        put(records, f"htru2/piefs-{metric}/unsupervised/anisotropy/0", penalised)
    assert checks.penalty_restores(Found(records))[1] is holds
