"""Every baseline by name: it learns, it repeats itself, and it copes with awkward tables."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons

from piefs.data import load
from piefs.errors import InputError
from reproduction.baselines import BASELINES, MAX_SVM_ROWS, make_baseline

NAMES = [name for name in BASELINES if name != "umap"]
TRAINED = ("mlp", "bottleneck-mlp", "neuralef", "nca")
"""Baselines that descend, for seconds."""
TIERED = [pytest.param(n, marks=pytest.mark.slow) if n in TRAINED else n for n in NAMES]
LINEAR = ["logistic-regression", "pca-lr", "lda"]


def quick(name, **keywords):
    """The baseline, NeuralEF with a small budget and boosting with few trees."""
    model = make_baseline(name, **{"seed": 0} | keywords)
    if name == "neuralef":
        model.set_params(features__steps=300, features__learning_rate=3e-3)
    if name == "gradient-boosting":
        model.set_params(max_iter=20)
    return model


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(900, noise=0.1, random_state=0)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    X, y = data.data / 16, data.target
    return X[:700], y[:700], X[700:1100], y[700:1100]


@pytest.fixture(scope="module")
def fitted(moons):
    """Every baseline, fitted to the moons when first asked for."""
    models = {}

    def of(name):
        if name not in models:
            models[name] = quick(name).fit(*moons[:2])
        return models[name]

    return of


@pytest.mark.parametrize("name", TIERED)
def test_it_learns_the_moons(name, moons, fitted):
    _, _, X, y = moons
    assert fitted(name).score(X, y) > (0.82 if name in LINEAR else 0.86)


@pytest.mark.parametrize("name", ["random-forest", "gradient-boosting", "svm"])
def test_a_curved_boundary_is_within_reach_of_the_nonlinear_classifiers(name, moons, fitted):
    _, _, X, y = moons
    assert fitted(name).score(X, y) > 0.97


@pytest.mark.parametrize("name", ["logistic-regression", "pca-lr"])
def test_linear_methods_stop_near_the_accuracy_that_the_paper_reports_for_the_moons(name):
    data = load("two-moons")
    model = make_baseline(name, seed=0).fit(data.train.x, data.train.y)
    assert model.score(data.validation.x, data.validation.y) == pytest.approx(0.88, abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("name", TIERED)
def test_it_learns_ten_digits(name, digits):
    X, y, X_new, y_new = digits
    assert quick(name, image=True).fit(X, y).score(X_new, y_new) > 0.75


@pytest.mark.parametrize("name", TIERED)
def test_a_clone_fitted_again_predicts_the_same(name, moons, fitted):
    X, y, X_new, _ = moons
    again = clone(fitted(name)).fit(X, y)
    scores = "decision_function" if name == "svm" else "predict_proba"
    first, second = (getattr(model, scores)(X_new) for model in (fitted(name), again))
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random-forest", "neuralef", "mlp", "nystroem-lr"])
def test_another_seed_gives_another_model(name, moons, fitted):
    X, y, X_new, _ = moons
    other = quick(name, seed=1).fit(X, y)
    assert not np.array_equal(fitted(name).predict_proba(X_new), other.predict_proba(X_new))


@pytest.mark.parametrize("name", [name for name in TIERED if name != "svm"])
def test_probabilities_sum_to_one_and_their_largest_is_predicted(name, moons, fitted):
    X = moons[2]
    probabilities = fitted(name).predict_proba(X)
    assert probabilities.shape == (len(X), 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), fitted(name).predict(X))


@pytest.mark.parametrize("columns", [1, 2], ids=["one feature", "a constant column"])
@pytest.mark.parametrize("name", TIERED)
def test_awkward_tables_with_named_classes_are_learned(name, columns):
    x = np.random.default_rng(0).normal(size=120)
    X = np.stack([x, np.full(120, 3.0)], axis=1)[:, :columns]
    y = np.where(x > 0, "above", "below")
    model = quick(name)
    if name == "neuralef":
        model.set_params(features__hidden=(16,), features__n_components=4)
    model.fit(X[:90], y[:90])
    assert set(model.predict(X)) == {"above", "below"}
    assert model.score(X[90:], y[90:]) > 0.8


def test_only_linear_methods_standardise_images():
    scaled = [
        name
        for name in NAMES
        if hasattr(model := make_baseline(name, seed=0, image=True), "named_steps")
        and model.named_steps["scale"] != "passthrough"
    ]
    assert scaled == ["logistic-regression", "pca-lr", "lda", "nystroem-lr"]


def test_neuralef_takes_the_network_kernel_for_images_and_the_gaussian_one_for_tables():
    kernels = [
        make_baseline("neuralef", seed=0, image=image).named_steps["features"].kernel
        for image in (True, False)
    ]
    assert kernels == ["nngp", "rbf"]


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match=r"'oracle'.*random-forest.*neuralef"):
        make_baseline("oracle", seed=0)


def test_no_components_are_refused():
    with pytest.raises(InputError, match="n_components=0"):
        make_baseline("pca-lr", seed=0, n_components=0)


def test_a_support_vector_machine_refuses_too_many_rows_and_says_how_many_it_takes():
    n = MAX_SVM_ROWS + 1
    with pytest.raises(InputError, match=r"20,000 rows, not 20,001.*nystroem-lr"):
        make_baseline("svm", seed=0).fit(np.zeros((n, 1)), np.arange(n) % 2)


def test_umap_without_its_package_names_it(monkeypatch, moons):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(InputError, match="pip install umap-learn"):
        make_baseline("umap", seed=0).fit(*moons[:2])


def test_umap_sees_the_labels_as_numbers(monkeypatch, moons):
    X, y, _, _ = moons
    seen = {}

    class UMAP:
        def __init__(self, **keywords):
            seen.update(keywords)

        def fit(self, X, y):
            seen["labels"] = y
            return self

        def transform(self, X):
            return X

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    make_baseline("umap", seed=3, n_components=2).fit(X, np.where(y == 1, "upper", "lower"))
    np.testing.assert_array_equal(seen["labels"], y)
    assert (seen["n_components"], seen["random_state"]) == (2, 3)
