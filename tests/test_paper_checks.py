"""Checks of the paper's claims on records that are made up, so that each can go either way."""

from typing import Any

import pytest

from piefs.paper import checks
from piefs.paper.cells import DATASETS, Cell
from piefs.paper.evidence import NOT_RUN, Found, on
from piefs.paper.ledger import deviations
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


@pytest.mark.parametrize(
    ("verdicts", "holds"),
    [
        ({"mnist": True, "htru2": True}, True),
        ({"mnist": True, "htru2": False}, False),
        ({"mnist": True, "htru2": None}, None),
        ({"mnist": False}, False),
        ({"mnist": True}, None),
        ({}, None),
    ],
)
def test_a_claim_about_sets_fails_on_any_and_holds_on_all(records, verdicts, holds):
    def of(found, dataset):
        return ("so much", verdicts[dataset]) if dataset in verdicts else None

    text, verdict = on(("mnist", "htru2"), of, "in points: ")(Found(records))
    assert verdict is holds
    assert ("so far 1 of 2 sets" in text) == (len(verdicts) == 1)
    assert (text == "not run yet") == (not verdicts)


def history(column: str, *turns: tuple[float, ...]) -> list[dict[str, float]]:
    """Rows of a run, with a column's values map by map."""
    return [
        {"step": 1000.0 * (10 * k + i), "map": k + 1.0, column: value}
        for k, values in enumerate(turns)
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(("last", "holds"), [(0.4, True), (0.05, False)])
def test_smoothness_comes_last_if_its_weight_grows_from_first_to_last(records, last, holds):
    put(records, OFF, history=history("w_mde", (0.1, 0.3), (0.2, last)))
    text, verdict = checks.smoothness_comes_last(Found(records), "mnist")
    assert verdict is holds
    assert text == f"0.10 → 0.30 → {last:.2f}"


@pytest.mark.parametrize(("last", "holds"), [(0.3, True), (0.1, False)])
def test_a_residual_that_ends_above_its_lowest_has_risen(records, last, holds):
    put(records, OFF, history=history("gram_residual", (0.5, 0.1), (0.4, last)))
    assert checks.residual_rises(Found(records), "mnist") == (f"0.10 → {last:.2f}", holds)


@pytest.mark.parametrize(("dip", "holds"), [(0.899, True), (0.7, False)])
def test_a_run_that_dips_after_it_has_converged_is_not_stable(records, dip, holds):
    put(records, OFF, history=history("validation_accuracy", (0.1,), (0.2, 0.5), (0.9, dip, 0.9)))
    text, verdict = checks.converged(Found(records), "mnist")
    assert verdict is holds
    assert text == f"{100 * (dip - 0.9):+.2f}"


def test_changes_of_two_seeds_do_not_cancel(records):
    for seed, last in enumerate((0.8, 1.0)):
        name = OFF[:-1] + str(seed)
        put(records, name, history=history("validation_accuracy", (0.1,), (0.2,), (0.9, last)))
    assert checks.converged(Found(records), "mnist")[1] is False


@pytest.mark.parametrize(("energies", "holds"), [([0.1, 0.2, 0.5], True), ([3, 2, 1], False)])
def test_a_spectral_order_is_one_of_rising_energies(records, energies, holds):
    put(records, OFF, energies=energies)
    assert checks.energies_rise(Found(records), "mnist")[1] is holds


@pytest.mark.parametrize(("without", "holds"), [(0.94, True), (0.96, False)])
def test_what_smoothness_adds_is_told_with_the_gram_errors(records, without, holds):
    put(records, OFF, 0.95, gram_error_batch=0.5)
    assert checks.smoothness_regularises(Found(records), "mnist") is None
    put(records, OFF.replace("paper", "no-smoothness"), without, gram_error_batch=0.1)
    text, verdict = checks.smoothness_regularises(Found(records), "mnist")
    assert verdict is holds
    assert text.endswith("Gram error 0.10 → 0.50")


@pytest.mark.parametrize(("static", "holds"), [(9.0, True), (0.1, False)])
def test_a_gate_protects_if_static_weights_have_larger_errors(records, static, holds):
    put(records, OFF, gram_error_batch=0.5)
    put(records, OFF.replace("paper", "no-gate"), gram_error_batch=static)
    assert checks.gate_protects_gram(Found(records), "mnist")[1] is holds


@pytest.mark.parametrize(("power", "holds"), [(1, True), (0, False)])
def test_the_gap_to_the_population_falls_as_one_over_the_batch(records, power, holds):
    for variant, size in (
        *(("batch-256", 256), ("batch-1024", 1024)),
        *(("paper", 2048), ("batch-4096", 4096)),
    ):
        assert checks.gap_falls_with_batch(Found(records)) == NOT_RUN
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
    assert check(Found(records)) == NOT_RUN
    put_metrics(records, "mnist", mode, 0.95, diag, 0.93)
    assert check(Found(records))[1] is holds


@pytest.mark.parametrize("slack", [0.0, 2.0])
def test_a_lead_within_the_slack_is_forgiven(records, slack):
    put_metrics(records, "mnist", "unsupervised", 0.95, 0.96, 0.93)
    check = checks.off_is_best("unsupervised", "mnist", slack=slack)
    assert check(Found(records))[1] is (slack > 1)


@pytest.mark.parametrize(
    ("trotter", "lowest", "holds"), [(0.945, 80, None), (0.93, 80, False), (0.945, 96, False)]
)
def test_metrics_hardly_matter_if_all_are_high_and_within_a_point(records, trotter, lowest, holds):
    put_metrics(records, "mnist", "supervised", 0.95, 0.949, trotter, gram_error_batch=0.2)
    text, verdict = checks.metrics_hardly_matter(lowest)(Found(records))
    assert verdict is holds  # at best open, with one of five sets
    assert "% at 0.20 to 0.20" in text


@pytest.mark.parametrize(
    ("accuracy", "error", "holds"), [(0.93, 0.1, True), (0.95, 9.0, True), (0.95, 0.1, False)]
)
def test_other_dampenings_must_both_be_worse_in_one_way_or_another(records, accuracy, error, holds):
    put(records, OFF, 0.95, gram_error_batch=0.2)
    rational = OFF.replace("paper", "weighting-rational")
    put(records, rational, accuracy, gram_error_batch=error)
    assert checks.other_dampenings(Found(records)) == NOT_RUN
    put(records, OFF.replace("paper", "weighting-polynomial"), 0.9, gram_error_batch=0.1)
    assert checks.other_dampenings(Found(records))[1] is holds


@pytest.mark.parametrize(("n_ahead", "holds"), [(4, True), (3, False)])
def test_neuralef_is_matched_on_four_of_five_sets_or_not_at_all(records, n_ahead, holds):
    for i, dataset in enumerate(DATASETS):
        assert checks.matches_neuralef(Found(records))[1] is None
        put(records, f"{dataset}/neuralef/unsupervised/paper/0", 0.85)
        ours = 0.9 if i < n_ahead else 0.8
        put(records, f"{dataset}/piefs-off/unsupervised/paper/0", ours)
    assert checks.matches_neuralef(Found(records))[1] is holds


@pytest.mark.parametrize(
    ("plain", "penalised", "holds"), [(0.8, 0.9, True), (0.8, 0.7, False), (0.99, 0.96, None)]
)
def test_a_penalty_restores_what_was_behind_and_comes_nearer(records, plain, penalised, holds):
    put_metrics(records, "htru2", "unsupervised", 0.95, plain, plain)
    assert checks.penalty_restores(Found(records), "htru2") is None
    for metric in ("diag", "trotter"):
        put(records, f"htru2/piefs-{metric}/unsupervised/anisotropy/0", penalised)
    text, verdict = checks.penalty_restores(Found(records), "htru2")
    assert verdict is holds
    assert ("not behind off" in text) == (holds is None)


@pytest.mark.parametrize(("high", "holds"), [(2.0, True), (5.0, False), (0.1, False)])
def test_ranges_of_scales_are_about_four_or_not(records, high, holds):
    name = "htru2/piefs-diag/{}/paper/0"
    put(records, name.format("unsupervised"), log_scale_ranges=[[-0.5, 0.5], [-2.0, high]])
    assert checks.log_scales(Found(records))[1] is holds
    assert checks.labels_hold_scales(Found(records), "htru2") is None
    put(records, name.format("supervised"), log_scale_ranges=[[-1.0, 1.5]])
    assert checks.labels_hold_scales(Found(records), "htru2")[1] is (high + 2 > 2.5)


def test_three_seeds_each_are_needed_to_call_settings_equal(records):
    variants = ("paper", "laplacian-calibrated", "laplacian-frozen")
    for seed in range(3):
        assert checks.laplacian(Found(records))[1] is None
        for variant in variants:
            put(records, f"htru2/piefs-off/supervised/{variant}/{seed}", 0.97 + seed / 1000)
    assert checks.laplacian(Found(records))[1] is True


def test_a_gram_error_beyond_a_factor_of_two_is_listed_with_its_reason(records):
    put(records, "htru2/piefs-off/supervised/paper/0", 0.979, gram_error_batch=0.15)
    assert deviations(records) == []
    put(records, "htru2/piefs-off/supervised/paper/0", 0.979, gram_error_batch=0.19)
    (found,) = deviations(records)
    assert found.name == "Gram error, htru2/piefs-off/supervised/paper"
    assert "fewer maps" in found.why
