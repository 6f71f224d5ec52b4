"""Every baseline by name, and the features that some are made of."""

import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.decomposition import PCA

from piefs.core.maps import init_map
from piefs.core.networks import generator
from piefs.data import load
from piefs.errors import InputError
from reproduction.baselines import BASELINES, MAX_SVM_ROWS, make_baseline
from reproduction.baselines.features import (
    Bottleneck,
    ClippedPCA,
    MatchedMLP,
    MedianNystroem,
    SubsampledNCA,
    matched_mlp,
    matched_width,
    n_parameters,
    stratified_rows,
)

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


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    return rng.normal(size=(120, 4)) + 3 * np.eye(4)[y], y


@pytest.mark.parametrize(
    ("features", "width"),
    [(ClippedPCA(9), 4), (SubsampledNCA(9), 4), (MedianNystroem(200), 120), (Bottleneck(9), 9)],
    ids=lambda value: type(value).__name__,
)
def test_components_are_as_many_as_the_data_allow(features, width, blobs):
    X, y = blobs
    model = clone(features).fit(X, y)
    assert model.transform(X).shape == (120, width)
    assert len(model.get_feature_names_out()) == width
    assert model.n_components == features.n_components


def test_clipped_components_are_the_principal_ones(blobs):
    X, _ = blobs
    np.testing.assert_allclose(ClippedPCA(2).fit_transform(X), PCA(2).fit_transform(X))


def test_nystroem_features_on_every_row_give_the_gaussian_kernel_back(blobs):
    X, _ = blobs
    features = MedianNystroem(120).fit_transform(X)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    median = np.median(distances[np.triu_indices(120, 1)])
    expected = np.exp(-((distances / median) ** 2) / 2)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-4)


@pytest.mark.slow
def test_bottleneck_is_what_the_network_reads_its_classes_from(blobs):
    X, y = blobs
    model = Bottleneck(5).fit(X, y)
    net = model.inner_.net
    logits = model.transform(X) @ net.coefs_[-1] + net.intercepts_[-1]
    np.testing.assert_allclose(
        np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), net.predict_proba(X), rtol=1e-6
    )


def test_neighbourhood_components_are_fitted_to_a_bounded_number_of_rows(blobs, monkeypatch):
    X, y = blobs
    monkeypatch.setattr(SubsampledNCA, "max_rows", 30)
    bounded = SubsampledNCA(2).fit(X, y)
    rows = stratified_rows(y, 30, 0)
    np.testing.assert_array_equal(
        bounded.transform(X), SubsampledNCA(2).fit(X[rows], y[rows]).transform(X)
    )


def test_a_subsample_keeps_the_shares_of_the_classes():
    y = np.repeat([0, 1], [900, 100])
    rows = stratified_rows(y, 200, 0)
    assert len(np.unique(rows)) == 200
    assert np.bincount(y[rows]).tolist() == [180, 20]
    np.testing.assert_array_equal(stratified_rows(y, 1000, 0), np.arange(1000))
    assert len(stratified_rows(np.r_[y, 2], 200, 0)) == 200


@pytest.mark.parametrize("features", [SubsampledNCA(), Bottleneck()], ids=["nca", "bottleneck"])
def test_features_made_from_labels_ask_for_them(features, blobs):
    with pytest.raises(InputError, match=r"fit\(X, y\)"):
        features.fit(blobs[0])


def n_entries(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("d", [1, 8, 300])
def test_parameters_are_counted_as_the_maps_have_them(d):
    shapes = jax.eval_shape(lambda: init_map(generator(0), d))
    assert n_parameters((d, 64, 64, 64, 1)) == n_entries(shapes)


@pytest.mark.parametrize("after", [(1,), (10,), (16, 10)], ids=str)
@pytest.mark.parametrize("d", [1, 2, 64, 784])
def test_no_other_width_matches_sixteen_maps_better(d, after):
    wanted = 16 * n_parameters((d, 64, 64, 64, 1))
    error = {w: abs(n_parameters((d, w, w, w, *after)) - wanted) for w in range(1, 2000)}
    width = matched_width(d, after, 16)
    assert error[width] == min(error.values())
    assert error[width] < 0.01 * wanted


@pytest.mark.slow
def test_the_fitted_network_has_the_parameters_of_the_maps(rng):
    X, y = rng.normal(size=(90, 5)), np.arange(90) % 3
    net = MatchedMLP(4, random_state=0).fit(X, y).net_
    entries = n_entries((net.coefs_, net.intercepts_))
    assert entries == pytest.approx(4 * n_parameters((5, 64, 64, 64, 1)), rel=0.01)


def test_early_stopping_is_left_out_where_a_tenth_of_the_rows_cannot_hold_every_class(rng):
    X = rng.normal(size=(40, 2))
    stops = [
        matched_mlp(X[: len(y)], y, n_maps=2, seed=0).early_stopping
        for y in (np.arange(40) % 2, np.arange(40) % 5, np.r_[np.arange(39) % 2, 7])
    ]
    assert stops == [True, False, False]
