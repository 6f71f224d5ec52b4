"""Cross-fitted coordinates do not flatter."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import toys
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.errors import InputError
from toys import flat

SMALL = toys.SMALL | {"steps_per_component": 150, "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def noise():
    """Labels that have nothing to do with the rows."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 5)), rng.integers(0, 2, 200)


def probe(phi, y):
    return LogisticRegression().fit(phi, y).score(phi, y)


@pytest.mark.slow
def test_coordinates_of_noise_flatter_unless_they_are_cross_fitted(noise):
    X, y = noise
    by_heart = SMALL | {"steps_per_component": 300, "weight_decay": 0.0, "hidden": (64, 64, 64)}
    model = PIEFSClassifier(**flat(**by_heart))
    assert probe(model.fit_transform(X, y), y) > 0.9
    honest = model.fit_transform(X, y, cross_fit=True)
    assert probe(honest, y) < 0.65
    assert model.cross_fit_scores_["train"] > 0.9
    assert 0.3 < model.cross_fit_scores_["held_out"] < 0.7


def test_on_rows_that_can_be_learned_both_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = PIEFSClassifier(**flat(**SMALL))
    honest = model.fit_transform(X, y, cross_fit=2)
    plain = model.transform(X)
    assert np.corrcoef(honest[:, 0], plain[:, 0])[0, 1] > 0.9  # the axes were turned to each other
    assert model.cross_fit_scores_["held_out"] > 0.95


def test_tables_weights_and_numbers_are_cut_into_folds_too(noise):
    X, _ = noise
    frame = pd.DataFrame(X, columns=list("abcde"))
    few = SMALL | {"steps_per_component": 20}
    model = PIEFSRegressor(**flat(**few)).set_output(transform="pandas")
    honest = model.fit_transform(frame, X[:, 0], cross_fit=2, sample_weight=np.ones(200))
    assert list(honest.columns) == ["phi1", "phi2", "phi3"]
    assert set(model.cross_fit_scores_) == {"train", "held_out"}
    unsupervised = PIEFSTransformer(**flat(**few))
    assert unsupervised.fit_transform(X, cross_fit=2).shape == (200, 3)
    assert unsupervised.cross_fit_scores_ is None


@pytest.mark.parametrize("folds", [1, 1000])
def test_impossible_numbers_of_folds_are_refused(noise, folds):
    few = SMALL | {"steps_per_component": 5}
    with pytest.raises(InputError, match="number of folds"):
        PIEFSClassifier(**flat(**few)).fit_transform(*noise, cross_fit=folds)
