"""Runs whose target is a number: their scores, their figures, and what they refuse."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import piefs
from piefs.app.run import run
from piefs.data import Dataset, Split, load
from piefs.errors import InputError
from piefs.report.scores import regression_scores

SMALL = {
    "preset": "fast",
    "n_components": 3,
    "steps_per_component": 60,
    "batch_size": 64,
    "hidden": (8, 8),
    "random_state": 0,
    "optimizer": {"log_every": 20},
    "report": False,
}


def numbers(n_features=2, n=200):
    """A smooth function of the first two features."""
    rng = np.random.default_rng(0)

    def split(n):
        x = rng.uniform(-1, 1, (n, n_features))
        return Split(x, 100 + 20 * (np.sin(2 * x[:, 0]) + x[:, 1]))

    names = tuple(f"x{j + 1}" for j in range(n_features))
    return Dataset("hills", split(n), split(60), split(60), (), names, "", target_name="height ($)")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return out, run(numbers(), out, task="regression", **SMALL)


def test_metrics_are_those_of_the_saved_model(finished):
    out, metrics = finished
    assert json.loads((out / "metrics.json").read_text()) == metrics
    assert metrics["task"] == "regression"
    assert "accuracy" not in metrics
    model = piefs.load(out / "model")
    for split, part in numbers().splits.items():
        predicted = model.predict(part.x)
        assert metrics["r2"][split] == pytest.approx(r2_score(part.y, predicted))
        rmse = mean_squared_error(part.y, predicted) ** 0.5
        assert metrics["rmse"][split] == pytest.approx(rmse)
        assert metrics["mae"][split] == pytest.approx(mean_absolute_error(part.y, predicted))
    for name in ("gram_error", "gram_residual"):
        assert set(metrics[name]) == {"train", "validation", "test"}
    assert len(metrics["energies"]) == 3


def test_history_follows_validation_r2(finished):
    out, metrics = finished
    header, *rows = (out / "history.csv").read_text().splitlines()
    last = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    assert float(last["validation_r2"]) == pytest.approx(metrics["r2"]["validation"], abs=1e-3)


@pytest.mark.parametrize(
    ("n_features", "names"),
    [
        (2, {"map-1", "map-2", "map-3", "prediction"}),
        pytest.param(3, {"dependence-3"}, marks=pytest.mark.slow),
    ],
)
def test_figures_show_the_numbers(finished, tmp_path, n_features, names):
    out = finished[0]
    if n_features != 2:
        out = tmp_path
        run(numbers(n_features), out, task="regression", **SMALL)
    drawn = {path.stem for path in (out / "figures").iterdir()}
    assert names | {"coordinates", "predictions", "residuals", "gram", "validation"} <= drawn
    assert all(path.stat().st_size > 3000 for path in (out / "figures").iterdir())


def test_a_run_that_was_cut_off_resumes_to_the_same_bytes(finished, tmp_path):
    def cut(state):
        if state.step >= 40:
            raise KeyboardInterrupt

    arguments = {"task": "regression", "checkpoint_seconds": 0.0} | SMALL | {"figures": False}
    with pytest.raises(KeyboardInterrupt):
        run(numbers(), tmp_path, callbacks=[cut], **arguments)
    assert (tmp_path / "checkpoint.safetensors").exists()
    metrics = run(numbers(), tmp_path, resume=True, **arguments)
    assert metrics["r2"] == finished[1]["r2"]
    weights = "model/weights.safetensors"
    assert (tmp_path / weights).read_bytes() == (finished[0] / weights).read_bytes()


@pytest.mark.slow
def test_without_labels_the_scores_are_those_of_least_squares_on_the_coordinates(tmp_path):
    data = numbers(3)
    metrics = run(data, tmp_path, task="unsupervised", **SMALL | {"report": True, "figures": False})
    model = piefs.load(tmp_path / "model")
    line = LinearRegression().fit(model.transform(data.train.x), data.train.y)
    expected = line.score(model.transform(data.test.x), data.test.y)
    assert metrics["r2"]["test"] == pytest.approx(expected)
    assert "PIEFS, linear probe" in (tmp_path / "report.html").read_text()


def test_r2_of_rows_that_do_not_differ_means_nothing():
    class Mean:
        def predict(self, x):
            return np.full(len(x), 2.0)

    for n in (1, 3):
        scores = regression_scores(Mean(), Split(np.zeros((n, 1)), np.full(n, 5.0)))
        assert scores == {"r2": None, "rmse": 3.0, "mae": 3.0}


@pytest.mark.parametrize(
    ("data", "task", "keywords", "said"),
    [
        (load("two-moons"), "regression", {}, "is a data set of classes.*--task classification"),
        (numbers(), "classification", {}, "is a data set of numbers.*--task regression"),
        (numbers(), "ranking", {}, "take --task regression or unsupervised, not ranking"),
        (numbers(), "regression", {"class_weight": "balanced"}, "class_weight is for class"),
    ],
)
def test_what_does_not_fit_the_task_is_refused_before_anything_is_written(
    tmp_path, data, task, keywords, said
):
    with pytest.raises(InputError, match=said):
        run(data, tmp_path / "run", task=task, **SMALL, **keywords)
    assert not (tmp_path / "run").exists()
