"""Feature maps that size themselves by the data."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA

from piefs.errors import InputError
from reproduction.baselines.features import (
    Bottleneck,
    ClippedPCA,
    MedianNystroem,
    SubsampledNCA,
    stratified_rows,
)


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
