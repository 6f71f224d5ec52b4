"""Linear probes on fitted coordinates, and what importing the scores costs."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from piefs.data import Dataset, Split
from piefs.report.scores import classification_scores, evaluate, probe, regression_scores


class Doubled(BaseEstimator):
    """A fitted transformer that must not be fitted again."""

    def fit(self, x, y=None):
        raise AssertionError("a probe leaves the transformer as it is")

    def transform(self, x):
        return 2 * x

    def __sklearn_is_fitted__(self):
        return True


def test_a_probe_of_classes_is_logistic_regression_on_the_coordinates(rng):
    x = rng.normal(size=(80, 2))
    y = (x[:, 0] + 0.5 * rng.normal(size=80) > 0).astype(int)
    fitted = probe(Doubled(), is_regression=False).fit(x, y)
    plain = LogisticRegression().fit(2 * x, y)
    np.testing.assert_allclose(fitted.predict_proba(x), plain.predict_proba(2 * x))
    scores = classification_scores(fitted, Split(x, y))
    assert scores["accuracy"] == plain.score(2 * x, y)
    assert 0 < scores["ece"] < 0.2


def test_a_probe_of_numbers_is_least_squares_and_has_no_probabilities(rng):
    x = rng.normal(size=(30, 2))
    y = x @ [1.0, -2.0] + 3
    fitted = probe(Doubled(), is_regression=True).fit(x, y)
    assert not hasattr(fitted, "predict_proba")
    assert regression_scores(fitted, Split(x, y))["r2"] == 1.0
    assert regression_scores(fitted, Split(x, np.ones(30)))["r2"] is None


def test_a_model_without_steps_is_measured_without_a_last_batch(rng):
    ranges = np.zeros((2, 2))
    model = SimpleNamespace(
        gram_errors=lambda x: {"gram_error": 0.5},
        history_=[],
        energies_=np.ones(2),
        log_scale_ranges_=ranges,
    )
    part = Split(rng.normal(size=(5, 2)), np.zeros(5, int))
    found = evaluate(model, None, Dataset("rows", part, part, part, ("",), ("a", "b"), ""))
    assert set(found) == {"gram_error", "energies", "log_scale_ranges"}


def test_scores_need_neither_jax_nor_figures_nor_the_page():
    heavy = "'jax', 'matplotlib', 'jinja2', 'piefs.estimators'"
    script = f"import piefs.report.scores, sys; print([m for m in ({heavy},) if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_figures_without_matplotlib_say_what_to_install():
    script = "import sys; sys.modules['matplotlib'] = None; from piefs import plot"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "piefs.plot needs the package matplotlib: pip install 'piefs-learn[app]'" in done.stderr
