"""The regressor: numbers in their own units, one or several at once."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import piefs
from piefs import PIEFSRegressor
from piefs.errors import InputError
from toys import flat

SMALL = {"n_components": 4, "steps_per_component": 400, "hidden": (16, 16), "random_state": 0}
SMALL |= {"early_stopping": False, "batch_size": 128}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 3))
    return X, 1000 + 50 * (np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2])


@pytest.fixture(scope="module")
def fitted(rows):
    return PIEFSRegressor(**SMALL).fit(*rows)


def test_it_learns_what_a_line_cannot(rows, fitted):
    X, y = rows
    line = LinearRegression().fit(X[:400], y[:400]).score(X[400:], y[400:])
    ours = PIEFSRegressor(**SMALL).fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert ours > 0.85 > 0.8 > line


def test_predictions_have_the_units_and_the_shape_of_y(rows, fitted):
    X, y = rows
    assert fitted.predict(X).shape == y.shape
    assert fitted.predict(X).mean() == pytest.approx(y.mean(), abs=2)


def test_coordinates_are_orthonormal_on_the_training_rows(rows, fitted):
    phi = fitted.transform(rows[0]).astype(float)
    assert np.abs(phi.T @ phi / len(phi) - np.eye(4)).max() < 1e-6


def test_several_targets_share_the_coordinates(rows):
    X, y = rows
    both = np.column_stack([y, -3 * y + X[:, 0]])
    model = PIEFSRegressor(**SMALL).fit(X, both)
    assert model.predict(X).shape == (500, 2)
    assert model.score(X, both) > 0.85
    assert model.model_.readout.weights.shape == (2, 4)


def test_units_of_y_do_not_matter(rows):
    X, y = rows
    keywords = SMALL | {"dtype": "float64", "steps_per_component": 50}
    plain = PIEFSRegressor(**flat(**keywords)).fit(X, y).predict(X)
    other = PIEFSRegressor(**flat(**keywords)).fit(X, 1e-3 * y + 7).predict(X)
    np.testing.assert_allclose(other, 1e-3 * plain + 7, rtol=1e-6)


def test_a_constant_target_is_predicted(rows):
    X, _ = rows
    few = SMALL | {"steps_per_component": 20}
    np.testing.assert_allclose(
        PIEFSRegressor(**few).fit(X, np.full(500, 3.0)).predict(X), 3, atol=0.5
    )


def test_validation_rows_are_scored_in_training(rows):
    X, y = rows
    model = PIEFSRegressor(**SMALL).fit(X[:400], y[:400], validation_data=(X[400:], y[400:]))
    last = model.history_[-1]
    assert last["validation_r2"] == pytest.approx(model.score(X[400:], y[400:]), abs=1e-3)
    with pytest.raises(InputError, match="2 targets"):
        PIEFSRegressor(**SMALL).fit(X, y, validation_data=(X, np.column_stack([y, y])))


def test_rows_without_targets_count_for_the_coordinates(rows):
    X, y = rows
    model = PIEFSRegressor(**SMALL).fit(X[:200], y[:200], X_unlabeled=X[200:])
    assert model.coordinates_.shape == (500, 4)
    assert model.gram_error_ < 1e-6


def test_a_saved_regressor_predicts_the_same(rows, fitted, tmp_path):
    X, _ = rows
    fitted.save(tmp_path / "model")
    loaded = piefs.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.ritz().eigenvalues, fitted.ritz().eigenvalues)


@pytest.mark.slow
def test_a_second_fit_goes_on_from_the_first(rows):
    X, y = rows
    model = PIEFSRegressor(**SMALL).fit(X, y)
    before = model.predict(X)
    model.set_params(pretraining=model.model_, learning_rate=1e-12, steps_per_component=1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), before, atol=0.1)


@pytest.mark.slow
def test_a_large_offset_of_the_target_costs_no_precision(rows):
    X, y = rows
    far = PIEFSRegressor(**SMALL).fit(X, 1.7e9 + y)
    assert far.score(X, 1.7e9 + y) > 0.85


@pytest.mark.slow
def test_map_after_map_works_for_numbers_too(rows):
    X, y = rows
    keywords = SMALL | {"steps_per_component": 300}
    assert PIEFSRegressor(**flat(schedule="sequential", **keywords)).fit(X, y).score(X, y) > 0.5


def test_a_calibrated_temperature_needs_classes(rows):
    model = PIEFSRegressor(
        **flat(schedule="sequential", pretraining="graph-laplacian", t_class="calibrated", **SMALL)
    )
    with pytest.raises(InputError, match="needs classes"):
        model.fit(*rows)
