"""A run folder: what is in it, and that its numbers are right."""

import csv
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from piefs.app.run import run
from piefs.data import load
from piefs.estimators import PIEFSTransformer
from piefs.report.scores import classification_scores, expected_calibration_error

SMALL = {
    "preset": "fast",
    "n_components": 3,
    "steps_per_component": 60,
    "batch_size": 128,
    "hidden": (16, 16),
    "random_state": 0,
    "optimizer": {"log_every": 20},
}
PLAIN = SMALL | {"report": False, "figures": False}


@pytest.fixture(scope="module")
def moons_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return out, run(load("two-moons"), out, **PLAIN | {"figures": True})


def test_folder_holds_model_metrics_history_and_figures(moons_run):
    out, _ = moons_run
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    figures = {"coordinates", "map-1", "map-2", "map-3", "margin", "relevance", "score-by-maps"}
    figures |= {"energies", "gram", "confusion", "reliability", "losses"}
    figures |= {"validation", "gram-history", "dependence-1", "dependence-2"}
    assert files == {
        "model/weights.safetensors",
        "model/model.json",
        "metrics.json",
        "history.csv",
        *(f"figures/{name}.png" for name in figures),
    }


def test_metrics_file_has_the_contracts_keys(moons_run):
    out, metrics = moons_run
    stored = json.loads((out / "metrics.json").read_text())
    assert stored == metrics
    for name in ("accuracy", "f1", "roc_auc", "log_loss", "ece", "gram_error", "gram_residual"):
        assert set(stored[name]) == {"train", "validation", "test"}
    assert len(stored["energies"]) == 3
    assert stored["warnings"] == []
    assert stored["seconds"] > 0
    assert (stored["steps"], stored["steps_saved"]) == (60, 0)
    assert stored["steps_per_second"] == pytest.approx(60 / stored["phases"]["fitting"])
    assert stored["versions"]["jax"]
    assert stored["config"]["batch_size"] == 128
    assert stored["config"]["seed"] == 0


def test_gram_residual_is_the_root_of_gram_error(moons_run):
    _, metrics = moons_run
    for split, error in metrics["gram_error"].items():
        assert metrics["gram_residual"][split] == pytest.approx(error**0.5)


def test_history_has_a_row_an_interval(moons_run):
    out, _ = moons_run
    rows = list(csv.DictReader((out / "history.csv").read_text().splitlines()))
    assert [int(row["step"]) for row in rows] == [20, 40, 60]
    assert [int(row["map"]) for row in rows] == [3] * 3
    assert 0 <= float(rows[-1]["validation_accuracy"]) <= 1


@pytest.mark.slow
def test_a_run_map_after_map_tells_the_maps_apart_and_draws_their_weights(tmp_path):
    metrics = run(load("two-moons"), tmp_path, solver="sequential", **SMALL, report=False)
    assert metrics["steps"] + metrics["steps_saved"] == 180
    rows = list(csv.DictReader((tmp_path / "history.csv").read_text().splitlines()))
    assert [int(row["map"]) for row in rows] == [1] * 3 + [2] * 3 + [3] * 3
    assert (tmp_path / "figures" / "weights.png").stat().st_size > 5000


@pytest.mark.slow
def test_same_seed_writes_the_same_weights_byte_for_byte(moons_run, tmp_path):
    out, _ = moons_run
    run(load("two-moons"), tmp_path / "same", **PLAIN)
    run(load("two-moons"), tmp_path / "other", **PLAIN | {"random_state": 1})
    first, same, other = (
        (folder / "model/weights.safetensors").read_bytes()
        for folder in (out, tmp_path / "same", tmp_path / "other")
    )
    assert same == first
    assert other != first


@pytest.mark.slow
def test_unsupervised_run_scores_a_default_logistic_probe(tmp_path):
    data = load("digits")
    metrics = run(data, tmp_path, task="unsupervised", **PLAIN)
    model = PIEFSTransformer(standardize=False, **SMALL).fit(data.train.x)
    probe = LogisticRegression().fit(model.transform(data.train.x), data.train.y)
    expected = probe.score(model.transform(data.test.x), data.test.y)
    assert metrics["accuracy"]["test"] == pytest.approx(expected)
    assert metrics["config"]["metric"]["hidden"] == [64, 64, 64]


def test_multiclass_scores_agree_with_scikit_learn():
    data = load("digits")
    fitted = LogisticRegression(C=0.01, max_iter=1000).fit(data.train.x, data.train.y)
    scores = classification_scores(fitted, data.test)
    p, y = fitted.predict_proba(data.test.x), data.test.y
    assert scores["f1"] == pytest.approx(f1_score(y, p.argmax(1), average="macro"))
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"))
    assert scores["log_loss"] == pytest.approx(log_loss(y, p))
    assert scores["accuracy"] == pytest.approx(np.mean(p.argmax(1) == y))
    assert scores["ece"] == expected_calibration_error(y, p)


def calibration_error_bin_by_bin(truth, probabilities, n_bins=15):
    """The definition, written as the loop that it is."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    error = 0.0
    for b in range(n_bins):
        inside = (confidence > b / n_bins) & (confidence <= (b + 1) / n_bins)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return error


def test_calibration_error_is_the_mean_gap_between_confidence_and_accuracy(rng):
    p = rng.dirichlet([1, 1, 1], size=500)
    y = rng.integers(3, size=500)
    expected = calibration_error_bin_by_bin(y, p)
    assert expected_calibration_error(y, p) == pytest.approx(expected)


def test_calibration_error_of_known_cases():
    sure = np.tile([0.0, 1.0], (10, 1))
    assert expected_calibration_error(np.ones(10), sure) == 0
    assert expected_calibration_error(np.zeros(10), sure) == 1
    four_of_five = np.tile([0.2, 0.8], (10, 1))
    honest = np.repeat([0, 1], [2, 8])
    assert expected_calibration_error(honest, four_of_five) == pytest.approx(0, abs=1e-12)
    assert expected_calibration_error(np.ones(10), four_of_five) == pytest.approx(0.2)


def test_what_gives_no_probabilities_has_no_calibration_error():
    class Labels:
        def predict(self, x):
            return np.zeros(len(x), int)

    scores = classification_scores(Labels(), load("two-moons").test)
    assert scores["ece"] is None
    assert scores["accuracy"] == pytest.approx(0.5)
