"""Estimators with the default solver for tables."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.errors import InputError
from piefs.estimators.rows import TrainingRows


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def classifier(moons):
    return PIEFSClassifier(6, random_state=0).fit(*moons)


def wave(n=300, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    return X, 50 + 10 * np.sin(3 * X[:, 0]) + 5 * X[:, 1] ** 2


def test_a_table_is_solved_in_closed_form(classifier):
    assert classifier.settings_.solver == "eigen"
    assert classifier.n_iter_ == 0
    assert classifier.history_ == []
    assert classifier.gram_error_ < 1e-12


def test_it_predicts(classifier):
    X, y = make_moons(1000, noise=0.25, random_state=1)
    assert classifier.score(X, y) > 0.91
    assert log_loss(y, classifier.predict_proba(X)) < 0.25


def test_a_regressor_predicts_in_the_units_of_its_target():
    model = PIEFSRegressor().fit(*wave())
    assert model.score(*wave(seed=1)) > 0.99


def test_several_numbers_are_predicted_at_once():
    X, y = wave()
    both = np.stack([y, X[:, 2]], axis=1)
    assert PIEFSRegressor().fit(X, both).score(X, both) > 0.99


@pytest.mark.parametrize(
    ("keywords", "solver"),
    [
        ({"hidden": (8,)}, "nested"),
        ({"learning_rate": 1e-3}, "nested"),
        ({"metric": "trotter"}, "nested"),
        ({"callbacks": [lambda _: True]}, "nested"),
        ({"preset": "paper"}, "sequential"),
        ({"metric": "diag"}, "eigen"),
        ({"metric": "off"}, "eigen"),
        ({"preset": "fast"}, "eigen"),
    ],
)
def test_a_keyword_that_asks_for_steps_chooses_descent(keywords, solver):
    assert PIEFSClassifier(**keywords).check_settings(300).solver == solver


@pytest.mark.parametrize(
    ("rows", "columns", "solver"),
    [(60_000, 784, "nested"), (60_000, 20, "eigen"), (2_000, 784, "eigen")],
)
def test_many_rows_of_many_columns_descend(rows, columns, solver):
    assert PIEFSClassifier().check_settings(rows, n_features=columns).solver == solver


@pytest.mark.parametrize(
    ("keywords", "named"),
    [({"hidden": (8,)}, "hidden"), ({"early_stopping": True}, "early_stopping")],
)
def test_a_keyword_of_descent_is_refused_if_the_closed_form_is_asked_for(keywords, named, moons):
    with pytest.raises(InputError, match=f'{named} has no meaning with solver="eigen"'):
        PIEFSClassifier(solver="eigen", **keywords).fit(*moons)


def test_metrics_that_it_cannot_learn_are_refused(moons):
    with pytest.raises(InputError, match="metric='cayley' needs a solver that descends"):
        PIEFSClassifier(solver="eigen", metric="cayley").fit(*moons)


def test_more_classes_than_maps_have_a_map_each_but_one():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 20
    X = np.stack([np.cos(y), np.sin(y)], axis=1) + 0.05 * rng.normal(size=(400, 2))
    assert PIEFSClassifier().fit(X, y).n_components_ == 19
    assert PIEFSClassifier(5).fit(X, y).n_components_ == 5


def test_as_few_coordinates_as_do_are_kept(moons):
    X, y = load_iris(return_X_y=True)
    found = PIEFSClassifier("auto").fit(X, y)
    assert found.n_components_ <= 3
    assert found.score(X, y) > 0.93
    assert PIEFSClassifier("auto").fit(*moons).n_components_ == 1


def test_left_out_coordinates_come_with_the_fit(classifier, moons):
    X, y = moons
    honest = PIEFSClassifier(6, random_state=0).fit_transform(X, y, cross_fit=True)
    np.testing.assert_allclose(honest, classifier.left_out_, atol=1e-6)
    model = PIEFSClassifier(6)
    model.fit_transform(X, y, cross_fit=True)
    fresh = model.score(*make_moons(2000, noise=0.25, random_state=1))
    assert model.cross_fit_scores_["held_out"] == pytest.approx(fresh, abs=0.03)


def probe(phi, y):
    return LogisticRegression().fit(phi, y).score(phi, y)


def test_left_out_coordinates_do_not_flatter():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)  # nothing to learn
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = PIEFSClassifier(1, random_state=0).set_output(transform="pandas")
    honest = model.fit_transform(frame, y, cross_fit=True)
    flattered = model.transform(frame)
    assert probe(flattered, y) > 0.65 > probe(honest, y)
    assert list(honest.columns) == ["phi1"]
    assert 0.3 < model.cross_fit_scores_["held_out"] < 0.7
    transformer = PIEFSTransformer(2)
    assert transformer.fit_transform(X, y, cross_fit=True).shape == (200, 2)
    assert transformer.cross_fit_scores_ is None


@pytest.mark.parametrize("cross_fit", [True, 3])
@pytest.mark.parametrize("keywords", [{"solver": "nested"}, {"learning_rate": 1e-2}])
def test_networks_have_no_left_out_coordinates_and_say_so_before_they_train(
    moons, monkeypatch, keywords, cross_fit
):
    monkeypatch.setattr(PIEFSClassifier, "fit", None)
    with pytest.raises(InputError, match="cross_val_predict"):
        PIEFSClassifier(**keywords).fit_transform(*moons, cross_fit=cross_fit)


def test_without_labels_nothing_is_left_out(moons):
    with pytest.raises(InputError, match="needs labels"):
        PIEFSTransformer(2).fit_transform(moons[0], cross_fit=True)


def test_scores_of_left_out_numbers_are_in_their_units():
    X, y = wave()
    model = PIEFSRegressor()
    model.fit_transform(X, y + np.random.default_rng(0).normal(size=300) * 5, cross_fit=True)
    assert 0.3 < model.cross_fit_scores_["held_out"] < model.cross_fit_scores_["train"]


def test_intervals_hold_the_shares_that_they_promise():
    """Errors that grow with an input: the intervals do, too."""

    def table(seed):
        X, y = wave(600, seed)
        return X, y + np.random.default_rng(seed).normal(size=600) * 3 * np.exp(X[:, 2])

    model = PIEFSRegressor().fit(*table(0))
    X, y = table(1)
    mean, deviation = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    for share, z in ((0.5, 0.674), (0.8, 1.282), (0.95, 1.960)):
        assert np.mean(np.abs(y - mean) < z * deviation) == pytest.approx(share, abs=0.06)
    assert deviation[X[:, 2] > 0.5].mean() > 1.5 * deviation[X[:, 2] < -0.5].mean()


def test_deviations_survive_a_model_folder(tmp_path):
    X, y = wave()
    model = PIEFSRegressor(4).fit(X, np.stack([y, -y], axis=1))
    model.save(tmp_path / "model")
    for one, other in zip(
        load(tmp_path / "model").predict(X, return_std=True),
        model.predict(X, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_only_the_closed_form_knows_deviations():
    X, y = wave(60)
    model = PIEFSRegressor(2, steps_per_component=5, hidden=(4,)).fit(X, y)
    with pytest.raises(InputError, match="return_std=True needs"):
        model.predict(X, return_std=True)


def test_rows_without_label_take_part(moons):
    X, y = moons
    model = PIEFSClassifier(4).fit(X[:60], y[:60], X_unlabeled=X[60:])
    assert len(model.coordinates_) == 300
    assert model.gram_error_ < 1e-12
    assert model.score(X, y) > 0.8


def test_classes_can_be_weighed(moons):
    X, y = moons
    rare = np.flatnonzero((y == 0) | (np.arange(300) % 10 == 0))
    plain, balanced = (
        PIEFSClassifier(class_weight=weight).fit(X[rare], y[rare]) for weight in (None, "balanced")
    )
    assert balanced.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.05


def test_coordinates_without_labels_hold_for_new_rows():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = PIEFSTransformer(3).fit(X[:150])
    assert model.settings_.solver == "eigen"
    assert model.gram_errors(X[150:])["gram_error"] < 1


def test_fits_and_predictions_of_the_same_seed_are_the_same(moons):
    X, y = moons
    one, other = (PIEFSClassifier(4, random_state=3).fit(X, y).transform(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_a_row_has_the_same_coordinates_in_any_batch(classifier, moons):
    X, _ = moons
    whole = classifier.transform(X)
    alone = np.concatenate([classifier.transform(X[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, whole[:20], rtol=0, atol=1e-12)


def test_a_saved_model_is_the_same_function(classifier, moons, tmp_path):
    classifier.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(moons[0]), classifier.transform(moons[0]))
    np.testing.assert_array_equal(loaded.predict(moons[0]), classifier.predict(moons[0]))


def test_a_single_row_is_refused():
    with pytest.raises(ValueError, match="n_samples=1"):
        PIEFSTransformer().fit(np.ones((1, 3)))


def test_fitting_a_table_and_keeping_its_model_never_imports_jax(tmp_path):
    code = f"""
import sys
import numpy as np
from piefs import PIEFSClassifier, load
X = np.random.default_rng(0).normal(size=(80, 3))
model = PIEFSClassifier(3).fit(X, X[:, 0] > 0)
model.save({str(tmp_path / "model")!r})
load({str(tmp_path / "model")!r}).predict_proba(X)
model.export({str(tmp_path / "model.py")!r})
sys.exit("jax" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rows_of_a_group_are_left_out_together():
    """Five visits of each of 60 patients, whose labels are noise: only a visit knows its twins."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 3)), 5, axis=0) + 0.01 * rng.normal(size=(300, 3))
    y, patient = np.repeat(rng.integers(2, size=60), 5), np.repeat(np.arange(60), 5)
    alone = PIEFSClassifier(4, random_state=0).fit(X, y)
    grouped = PIEFSClassifier(4, random_state=0).fit(X, y, groups=[f"p{i}" for i in patient])

    def left_out_accuracy(model):
        return np.mean(model.model_.readout(model.left_out_).argmax(axis=1) == y)

    assert left_out_accuracy(alone) > 0.95
    assert left_out_accuracy(grouped) < 0.8
    assert grouped.predict_proba(X).max() < alone.predict_proba(X).max()


def test_networks_hold_out_whole_groups():
    X, y = make_moons(300, noise=0.25, random_state=0)
    groups = np.arange(300) // 10
    model = PIEFSClassifier(2, hidden=(4,), steps_per_component=210, batch_size=64, random_state=0)
    given = TrainingRows(X, y, groups=groups)
    settings = model.check_settings(300)
    kept, held = given.with_rows_set_aside(settings).parts
    assert settings.early_stopping
    assert not set(groups[kept]) & set(groups[held])


@pytest.mark.parametrize(
    ("groups", "said"), [([0] * 300, "names one group"), ([0, 1], "2 labels, X has 300 rows")]
)
def test_groups_that_mean_nothing_are_refused(moons, groups, said):
    with pytest.raises(InputError, match=said):
        PIEFSClassifier(2).fit(*moons, groups=groups)
