"""The estimators as a scikit-learn user meets them."""

import copy
import subprocess
import sys

import jax
import jax.numpy as jnp
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import piefs
from piefs import LossWeights, PIEFSClassifier, PIEFSTransformer
from piefs.core.metric import Off
from piefs.errors import InputError
from toys import SMALL, flat


@pytest.fixture(scope="module")
def fitted(moons):
    return PIEFSClassifier(**flat(**SMALL)).fit(*moons)


def coordinates(model, X):
    return np.asarray(model.transform(X))


def test_probabilities_logits_and_labels_agree(moons, fitted):
    X, _ = moons
    p, margin = fitted.predict_proba(X), fitted.decision_function(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-margin)), atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), (margin > 0).astype(int))
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), p)


def test_multiclass_decisions_have_a_column_for_each_class():
    X, y = make_blobs(200, centers=4, random_state=0)
    model = PIEFSClassifier(**flat(**SMALL | {"steps_per_component": 200})).fit(X, y)
    assert model.decision_function(X).shape == (200, 4)
    assert model.score(X, y) > 0.8


def test_fitted_attributes_are_there(moons, fitted):
    X, _ = moons
    np.testing.assert_array_equal(fitted.coordinates_, fitted.transform(X))
    assert fitted.gram_error_ == pytest.approx(fitted.gram_errors(X)["gram_error"])
    assert fitted.energies_.shape == (3,)
    assert (fitted.n_iter_, fitted.n_features_in_) == (60, 2)
    assert len(fitted.history_) == 3
    np.testing.assert_array_equal(fitted.classes_, [0, 1])
    assert fitted.model_.readout.weights.shape == (2, 3)


def test_the_feature_map_is_a_pure_jax_function(moons, fitted):
    X = moons[0][:20].astype(np.float32)
    feature_map = jax.jit(fitted.to_jax())
    phi = np.asarray(feature_map(X))
    np.testing.assert_allclose(phi, fitted.transform(X), rtol=1e-4, atol=1e-5)
    gradient = jax.jit(jax.grad(lambda x: feature_map(x[None])[0, 0]))(X[0])
    step = np.array([[1e-2, 0]], np.float32)
    ahead, behind = (np.asarray(feature_map(moved)) for moved in (X[:1] + step, X[:1] - step))
    assert gradient[0] == pytest.approx((ahead - behind)[0, 0] / 2e-2, abs=0.05)
    twice = np.asarray(jax.vmap(feature_map)(X.reshape(2, 10, 2)))
    np.testing.assert_allclose(twice.reshape(20, 3), phi, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("labels", [("no", "yes"), (-1, 1), (False, True)])
def test_labels_of_any_type_are_classes(moons, labels):
    X, y = moons
    named = np.array(labels)[y]
    model = PIEFSClassifier(**flat(**SMALL)).fit(X, named)
    assert set(model.predict(X)) <= set(labels)
    assert model.score(X, named) > 0.8


def test_minus_one_is_a_class_and_not_a_missing_label(moons):
    X, y = moons
    assert list(PIEFSClassifier(**flat(**SMALL)).fit(X, 2 * y - 1).classes_) == [-1, 1]


def test_unlabeled_rows_shape_gram_and_energy_but_not_the_classes(moons):
    X, y = moons
    keywords = SMALL | {"batch_size": 60}
    labeled = PIEFSClassifier(**flat(**keywords)).fit(X[:60], y[:60])
    helped = PIEFSClassifier(**flat(**keywords)).fit(X[:60], y[:60], X_unlabeled=X[60:])
    assert helped.gram_errors(X)["gram_error"] < labeled.gram_errors(X)["gram_error"]
    assert helped.coordinates_.shape == (300, 3)
    np.testing.assert_array_equal(helped.classes_, [0, 1])


def test_sample_weights_of_zero_take_rows_away_from_all_losses(moons):
    X, y = moons
    weight = np.r_[np.ones(200), np.zeros(100)]
    spoiled = X.copy()
    spoiled[200:] += 50
    keywords = SMALL | {"standardize": False, "batch_size": 300}
    clean = PIEFSClassifier(**flat(**keywords)).fit(X, y, weight)
    dirty = PIEFSClassifier(**flat(**keywords)).fit(spoiled, y, weight)
    np.testing.assert_allclose(clean.predict_proba(X), dirty.predict_proba(X), atol=1e-3)


def test_class_weight_moves_the_boundary(moons):
    X, y = moons
    plain = PIEFSClassifier(**flat(**SMALL)).fit(X, y)
    heavy = PIEFSClassifier(**flat(class_weight={1: 20.0}, **SMALL)).fit(X, y)
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.05
    with pytest.raises(InputError, match="class_weight"):
        PIEFSClassifier(**flat(class_weight={7: 1.0}, **SMALL)).fit(X, y)


def test_balanced_class_weight_equals_its_dict(moons):
    X, y = moons
    X, y = X[y == 0].tolist() + X[y == 1][:30].tolist(), [0] * 150 + [1] * 30
    balanced = PIEFSClassifier(**flat(class_weight="balanced", **SMALL)).fit(X, y)
    explicit = PIEFSClassifier(**flat(class_weight={0: 180 / 300, 1: 180 / 60}, **SMALL)).fit(X, y)
    np.testing.assert_array_equal(balanced.predict_proba(X), explicit.predict_proba(X))


def test_float64_is_double_precision_throughout(moons):
    X, y = moons
    model = PIEFSClassifier(**flat(dtype="float64", **SMALL)).fit(X, y)
    assert model.transform(X).dtype == np.float64
    assert {leaf.dtype for leaf in jax.tree.leaves(model.model_)} == {np.dtype(np.float64)}
    assert model.score(X, y) > 0.8
    assert jnp.ones(1).dtype == jnp.float32  # the user's own setting is as it was


def test_maps_in_turn_do_not_stop_early(moons):
    X, y = moons
    in_turn = SMALL | {"schedule": "sequential", "early_stopping": "auto"}
    model = PIEFSClassifier(**flat(**in_turn))
    assert model.check_settings(len(X)).early_stopping is False
    with pytest.raises(InputError, match=r"early_stopping watches .*sequential"):
        PIEFSClassifier(**flat(**in_turn | {"early_stopping": True})).fit(X, y)


def test_validation_data_is_scored_while_training(moons):
    X, y = moons
    model = PIEFSClassifier(**flat(**SMALL)).fit(
        X[:200], y[:200], validation_data=(X[200:], y[200:])
    )
    assert model.history_[-1]["validation_accuracy"] == pytest.approx(model.score(X[200:], y[200:]))
    with pytest.raises(InputError, match="validation_data"):
        PIEFSClassifier(**flat(**SMALL)).fit(X, y, validation_data=(X[:2], [0, 9]))


def test_warm_start_continues_from_the_fitted_maps(moons):
    X, y = moons
    keywords = SMALL | {"learning_rate": 1e-9}
    model = PIEFSClassifier(**flat(**SMALL)).fit(X, y)
    before = model.transform(X)
    model.set_params(pretraining=model.model_, learning_rate=1e-9).fit(X, y)
    np.testing.assert_allclose(model.transform(X), before, atol=1e-4)
    cold = PIEFSClassifier(**flat(**keywords)).fit(X, y)
    assert np.abs(cold.transform(X) - before).max() > 0.1


def test_frames_go_in_and_come_out(moons):
    X, y = moons
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = PIEFSClassifier(**flat(**SMALL)).set_output(transform="pandas").fit(frame, pd.Series(y))
    out = model.transform(frame)
    assert list(out.columns) == ["phi1", "phi2", "phi3"]
    assert list(model.feature_names_in_) == ["east", "north"]
    model.set_output(transform="default")
    np.testing.assert_array_equal(out.to_numpy(), model.transform(frame))
    assert model.score(frame, y) > 0.8


def test_polars_frames_go_in_and_come_out(moons):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = moons
    frame = polars.DataFrame({"east": X[:, 0], "north": X[:, 1]})
    model = PIEFSClassifier(**flat(**SMALL)).fit(frame, y)
    assert list(model.feature_names_in_) == ["east", "north"]
    assert model.set_output(transform="polars").transform(frame).columns == ["phi1", "phi2", "phi3"]


def test_it_works_in_pipelines_and_parallel_grid_searches(moons):
    X, y = moons
    pipeline = make_pipeline(MinMaxScaler(), PIEFSClassifier(**flat(**SMALL)))
    search = GridSearchCV(
        pipeline, {"piefsclassifier__n_components": [1, 3]}, cv=2, n_jobs=2, error_score="raise"
    ).fit(X, y)
    assert search.best_score_ > 0.7
    assert len(search.cv_results_["mean_test_score"]) == 2


def test_copies_of_a_fitted_estimator_predict_the_same(moons, fitted, tmp_path):
    X, _ = moons
    joblib.dump(fitted, tmp_path / "model.joblib")
    for other in (copy.deepcopy(fitted), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_clones_are_unfitted_and_have_an_html_repr(fitted):
    other = clone(fitted)
    assert not hasattr(other, "model_")
    assert other.get_params() == fitted.get_params()
    assert "PIEFSClassifier" in fitted._repr_html_()


def test_every_keyword_is_documented():
    for estimator in (PIEFSClassifier, PIEFSTransformer):
        for name in estimator().get_params():
            assert name in estimator.__doc__, name


def test_the_transformer_uses_labels_as_supervised_says(moons):
    X, y = moons
    none, given, ignored = (
        coordinates(PIEFSTransformer(**flat(**SMALL)).fit(X), X),
        coordinates(PIEFSTransformer(**flat(**SMALL)).fit(X, y), X),
        coordinates(PIEFSTransformer(**flat(**SMALL, supervised=False)).fit(X, y), X),
    )
    np.testing.assert_array_equal(none, ignored)
    assert not np.array_equal(none, given)
    classifier = PIEFSClassifier(**flat(**SMALL)).fit(X, y)
    np.testing.assert_array_equal(given, coordinates(classifier, X))
    with pytest.raises(InputError, match="supervised=True"):
        PIEFSTransformer(**flat(**SMALL, supervised=True)).fit(X)


def test_a_numeric_target_is_not_taken_for_classes(moons):
    X, _ = moons
    numbers = np.linspace(0, 1, len(X))
    first, second = (PIEFSTransformer(**flat(**SMALL)).fit(X, target) for target in (numbers, None))
    np.testing.assert_array_equal(coordinates(first, X), coordinates(second, X))


def test_an_own_metric_and_an_own_weighting_plug_in(moons):
    X, y = moons
    seen = []

    def weighting(gram_error, class_loss):
        return LossWeights(1.0, 1.0, 0.0)

    def metric(key, n_features):
        seen.append(n_features)
        return Off()

    PIEFSClassifier(**flat(metric=metric, weighting=weighting, schedule="sequential", **SMALL)).fit(
        X, y
    )
    PIEFSClassifier(**flat(metric=metric, **SMALL)).fit(X, y)
    assert seen == [2, 2]


def test_small_data_clips_the_batch_and_says_so(moons):
    X, y = moons
    with pytest.warns(UserWarning, match="clipped to the 40 rows"):
        model = PIEFSClassifier(**flat(**SMALL)).fit(X[:40], y[:40])
    assert model.settings_.batch_size == 40


def test_a_presets_k_is_clipped_but_an_explicit_one_is_refused(moons):
    X, y = moons
    model = PIEFSClassifier(steps_per_component=5, hidden=(4,), random_state=0)
    assert model.fit(X[:6], y[:6]).settings_.n_components == 6
    with pytest.raises(InputError, match="more than the 6 rows"):
        PIEFSClassifier(n_components=7).fit(X[:6], y[:6])


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"preset": "slow"}, "default, fast|paper"),
        ({"metric": "round"}, "trotter"),
        ({"activation": "step"}, "gelu"),
        ({"optimizer": "lbfgs"}, "adam"),
        ({"weighting": "none"}, "exponential"),
        ({"pretraining": "umap"}, "graph-laplacian"),
        ({"dtype": "float16"}, "float32"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"steps_per_component": -1}, "steps_per_component"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"t_class": "auto"}, "t_class"),
        ({"hidden": ()}, "hidden"),
        ({"hidden": 64}, "hidden"),
        ({"anisotropy": -1.0}, "anisotropy"),
    ],
)
def test_bad_keywords_are_refused_before_any_work(moons, keywords, said):
    with pytest.raises(InputError, match=said):
        PIEFSClassifier(**flat(**keywords)).fit(*moons)


def test_one_class_is_refused(moons):
    with pytest.raises(InputError, match="one class"):
        PIEFSClassifier(**flat(**SMALL)).fit(moons[0], np.zeros(300))


def test_verbose_prints_a_line_for_each_tenth_of_the_steps(moons, capsys):
    PIEFSClassifier(**flat(verbose=1, schedule="sequential", **SMALL)).fit(*moons)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("training")
    assert 6 <= len(lines) <= 11
    assert "map 3 of 3" in lines[-1]
    assert "left" in lines[2]
    PIEFSClassifier(**flat(verbose=2, **SMALL)).fit(*moons)
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3


def test_importing_is_light():
    code = (
        "import sys, piefs; "
        "print(sorted({'jax', 'matplotlib', 'typer', 'click', 'sklearn'} & set(sys.modules)));"
        "piefs.PIEFSClassifier;"
        "print(sorted({'matplotlib', 'typer', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]"]


def test_public_names_exist_and_others_do_not():
    for name in piefs.__all__:
        assert getattr(piefs, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = piefs.nothing
