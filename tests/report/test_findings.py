"""Findings about a run: each problem is found with advice, and a healthy run has none."""

import copy
from dataclasses import asdict

import pytest

from piefs.report.findings import findings, settings_in_use
from piefs.training.config import Metric, Settings
from piefs.training.diagnosis import Finding

METRICS = {
    "task": "classification",
    "accuracy": {"train": 0.97, "validation": 0.96, "test": 0.96},
    "ece": {"train": 0.01, "validation": 0.02, "test": 0.02},
    "gram_error_unbiased": {"train": 0.0, "validation": 0.02, "test": 0.03},
    "energies": [1.0, 2.0],
    "steps_saved": 0,
    "config": {"steps_per_component": 400},
}
EVIDENCE = {
    "baselines": [{"name": "random forest", "scores": {"accuracy": {"validation": 0.962}}}],
    "judged": {
        "validation": {
            "confusion": [[480, 20], [20, 480]],
            "bins": {"confidence": [0.9], "accuracy": [0.96], "counts": [1000]},
        }
    },
    "data": {
        "n_rows": {"train": 4000, "validation": 1000, "test": 1000},
        "class_names": ["cat", "dog"],
    },
    "facts": {
        "constant_columns": [],
        "repeated": 0,
        "leaked": 0,
        "class_counts": {"train": [2000, 2000]},
    },
    "by_maps": {"kept": [1, 2, 4], "scores": {"validation": [0.6, 0.8, 0.96]}},
}


def changed(document, path, value):
    """A copy with one entry changed; the path's keys are separated by dots."""
    document = copy.deepcopy(document)
    *parents, last = path.split(".")
    place = document
    for key in parents:
        place = place[key]
    place[last] = value
    return document


def kinds(metrics=METRICS, evidence=EVIDENCE):
    return [finding.kind for finding in findings(metrics, evidence)]


def test_a_healthy_run_has_no_findings():
    assert kinds() == []


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("accuracy.train", 0.99, "overfitting"),
        ("accuracy.validation", 0.90, "worse-than-a-baseline"),
        ("ece.validation", 0.2, "poor-calibration"),
        ("gram_error_unbiased.validation", 1.0, "not-orthonormal"),
        ("gram_error_unbiased.test", 1.0, "not-orthonormal"),
    ],
)
def test_bad_scores_are_found(path, value, kind):
    assert kind in kinds(metrics=changed(METRICS, path, value))


@pytest.mark.parametrize(
    ("path", "value", "kind", "said"),
    [
        ("judged.validation.confusion", [[500, 0], [500, 0]], "never-predicted", "dog"),
        ("facts.leaked", 300, "leaked-rows", "300 of 2,000"),
        ("facts.repeated", 1000, "repeated-rows", "1,000"),
        ("facts.constant_columns", ["year"], "constant-columns", "year"),
        ("facts.class_counts.train", [3993, 7], "few-rows-a-class", "dog (7)"),
        ("facts.class_counts.train", [3900, 100], "imbalanced", "98 %"),
        ("data.n_rows.test", 40, "few-test-rows", "40 test rows"),
        (
            "by_maps.scores.validation",
            [0.8, 0.959, 0.96],
            "fewer-maps-suffice",
            "first 2 of 4 maps",
        ),
    ],
)
def test_problems_of_rows_and_classes_are_found_and_named(path, value, kind, said):
    found = findings(METRICS, changed(EVIDENCE, path, value))
    (finding,) = [finding for finding in found if finding.kind == kind]
    assert said in finding.says
    assert finding.advice


def test_advice_on_calibration_depends_on_the_sign_of_the_error():
    metrics = changed(METRICS, "ece.validation", 0.3)
    (unsure,) = findings(metrics, EVIDENCE)
    bins = {"confidence": [0.99], "accuracy": [0.7], "counts": [1000]}
    (sure,) = findings(metrics, changed(EVIDENCE, "judged.validation.bins", bins))
    assert "underconfident" in unsure.says
    assert "train longer" in unsure.advice
    assert "overconfident" in sure.says
    assert "smoothness" in sure.advice


def test_warnings_of_training_are_passed_on_and_overfitting_is_reported_once():
    told = [
        asdict(Finding("still-improving", "It fell by 4 % at the end.", "Take more steps.")),
        asdict(Finding("overfitting", "It does not carry over.", "Give more rows.")),
    ]
    metrics = changed(METRICS, "warnings", told)
    improving, overfitting = findings(metrics, EVIDENCE)
    assert improving.says == "It fell by 4 % at the end."
    assert improving.advice == "Take more steps."
    assert overfitting.says == "It does not carry over."
    assert kinds(metrics=changed(metrics, "accuracy.train", 1.0)) == [
        "overfitting",
        "still-improving",
    ]


def test_a_baseline_that_is_better_by_chance_is_not_a_finding():
    better = changed(EVIDENCE, "baselines", [])
    forest = {"name": "random forest", "scores": {"accuracy": {"validation": 0.98}}}
    better["baselines"].append(forest)
    assert kinds(evidence=better) == ["worse-than-a-baseline"]
    few = changed(better, "data.n_rows.validation", 50)
    assert kinds(evidence=few) == []


def test_numbers_to_predict_are_judged_by_r2():
    metrics = {name: value for name, value in METRICS.items() if name not in ("accuracy", "ece")}
    metrics |= {"task": "regression", "r2": {"train": 0.95, "validation": 0.7, "test": 0.7}}
    evidence = changed(
        EVIDENCE, "baselines", [{"name": "ridge", "scores": {"r2": {"validation": 0.8}}}]
    )
    evidence |= {"judged": {"validation": {"truth": [1.0], "predicted": [1.0]}}, "by_maps": None}
    assert kinds(metrics=metrics, evidence=evidence) == ["overfitting", "worse-than-a-baseline"]


def test_without_labels_scores_are_not_judged():
    metrics = changed(METRICS, "task", "unsupervised") | {"accuracy": None, "ece": None}
    evidence = EVIDENCE | {"judged": {}, "baselines": [], "by_maps": None}
    assert kinds(metrics=metrics, evidence=evidence) == []


def test_bad_findings_come_first():
    evidence = changed(EVIDENCE, "facts.constant_columns", ["year"])
    found = findings(changed(METRICS, "gram_error_unbiased.test", 1.0), evidence)
    assert [finding.bad for finding in found] == [True, False]


def test_the_closed_form_is_not_advised_to_take_steps_or_smoothness():
    spoiled = METRICS | {"steps": 0, "accuracy": {"train": 0.99, "validation": 0.8, "test": 0.8}}
    spoiled |= {"ece": {"validation": 0.3}, "gram_error_unbiased": {"validation": 2.0}}
    found = findings(spoiled, EVIDENCE)
    assert len(found) == 4
    for advice in (finding.advice for finding in found):
        assert not any(word in advice for word in ("--steps", "smoothness", "weighting", "longer"))
    (gap,) = [finding for finding in found if finding.kind == "overfitting"]
    assert "left_out_" in gap.advice
    assert not gap.bad  # nothing was fitted on optimistic coordinates


def test_few_training_rows_explain_a_gram_error():
    metrics = changed(METRICS, "gram_error_unbiased.validation", 0.5)
    assert kinds(metrics) == ["not-orthonormal"]
    assert kinds(metrics, changed(EVIDENCE, "data.n_rows.train", 30)) == []


def test_a_closed_form_shows_the_settings_that_it_has():
    config = Settings(solver="eigen", metric=Metric("diag")).document()
    shown = {"preset", "solver", "n_components", "seed", "metric"}
    assert set(settings_in_use(config)) == shown
    assert settings_in_use(config | {"solver": "nested"}) == config | {"solver": "nested"}
