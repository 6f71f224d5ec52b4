"""Coordinates without labels: maps that continue the eigenmaps of a graph."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons, make_swiss_roll
from sklearn.linear_model import LogisticRegression, RidgeCV

import toys
from commands import piefs
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.core.losses import init_readout
from piefs.core.maps import init_map, stack
from piefs.core.metric import Off
from piefs.core.networks import generator
from piefs.core.objectives import Batch, SpectralObjective, Trainable
from piefs.errors import InputError
from piefs.training.readout import PENALTIES
from toys import flat

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = {"n_components": 3, "steps_per_component": 300, "hidden": (32, 32), "random_state": 0}


def test_the_loss_is_distance_and_energy(rng, float64):
    maps = stack([init_map(generator(k), 2, (5,), "tanh") for k in range(3)])
    x, target = jnp.asarray(rng.normal(size=(9, 2))), jnp.asarray(rng.normal(size=(9, 3)))
    batch = Batch(x, jnp.zeros((9, 3)), target, jnp.ones(9), jnp.ones(9))
    params = Trainable(maps, Off(), init_readout(0, 3))
    loss, record = jax.jit(SpectralObjective(0.3))(params, batch)
    phi, gradients = jax.jit(type(maps).coordinates_and_gradients)(maps, x)
    distance = np.mean(np.sum((np.asarray(phi) - np.asarray(target)) ** 2, axis=1))
    energy = np.mean(np.sum(np.asarray(gradients) ** 2, axis=(1, 2)))
    assert float(loss) == pytest.approx(distance + 0.3 * energy, rel=1e-12)
    assert float(record.loss_class) == pytest.approx(distance, rel=1e-12)


def test_the_first_coordinate_runs_along_the_roll_on_rows_it_has_not_seen():
    X, along = make_swiss_roll(1500, random_state=0)
    model = PIEFSTransformer(**SMALL).fit(X[:1000])
    first = model.transform(X[1000:])[:, 0]
    ranks = np.argsort(np.argsort(first)), np.argsort(np.argsort(along[1000:]))
    assert abs(np.corrcoef(*ranks)[0, 1]) > 0.95


def test_coordinates_are_orthonormal_on_all_rows_not_only_the_graphs():
    X, _ = make_moons(600, noise=0.05, random_state=0)
    model = PIEFSTransformer(preset=toys.preset(graph_rows=200), batch_size=300, **SMALL).fit(X)
    phi = model.transform(X).astype(float)
    assert np.abs(phi.T @ phi / len(X) - np.eye(3)).max() < 1e-6
    assert model.settings_.solver == "spectral"
    assert model.settings_.batch_size == 200  # the graph's rows are what is trained on


def test_few_rows_still_give_coordinates():
    X = np.random.default_rng(0).normal(size=(5, 2))
    few = {"steps_per_component": 5, "random_state": 0}
    assert PIEFSTransformer(**few).fit_transform(X).shape == (5, 3)
    assert PIEFSTransformer(5, **few).fit(X).settings_.solver == "joint"


def test_schedules_that_need_labels_or_none_say_so():
    X, y = make_moons(50, random_state=0)
    with pytest.raises(InputError, match="needs labels"):
        PIEFSTransformer(**flat(schedule="nested", **SMALL)).fit(X)
    with pytest.raises(InputError, match="does not look at labels"):
        PIEFSTransformer(**flat(schedule="spectral", **SMALL)).fit(X, y)
    for stop in (True, np.True_):
        with pytest.raises(InputError, match="early_stopping watches a loss on labels"):
            PIEFSClassifier(**flat(schedule="spectral", early_stopping=stop, **SMALL)).fit(X, y)


@pytest.mark.parametrize(
    ("n_rows", "keywords"),
    [(2, {}), (50, {"preset": toys.preset(graph_rows=5), "n_components": 8})],
)
def test_more_maps_than_a_graph_has_are_refused(n_rows, keywords):
    X, y = make_moons(n_rows, random_state=0)
    with pytest.raises(InputError, match="eigenmaps of a graph"):
        PIEFSClassifier(**flat(schedule="spectral", random_state=0, **keywords)).fit(X, y)


GRAPH = SMALL | {"schedule": "spectral"}
BRIEF = GRAPH | {"steps_per_component": 20}


@pytest.fixture(scope="module")
def shape(moons):
    """Coordinates of all rows, learned without a label."""
    return PIEFSTransformer(**flat(supervised=False, **GRAPH)).fit(moons[0])


def test_a_classifier_by_a_graph_is_those_coordinates_and_a_logistic_regression(moons, shape):
    X, y = moons
    model = PIEFSClassifier(**flat(**GRAPH)).fit(X[:16], y[:16], X_unlabeled=X[16:])
    phi = shape.transform(X)
    np.testing.assert_allclose(model.transform(X), phi, atol=1e-6)
    probe = LogisticRegression(max_iter=1000).fit(phi[:16], y[:16])
    np.testing.assert_allclose(model.predict_proba(X), probe.predict_proba(phi), atol=1e-5)
    assert "validation_accuracy" not in model.history_[-1]


def test_more_than_two_classes_and_weights_reach_the_readout():
    X, y = make_blobs(200, centers=4, random_state=0)
    model = PIEFSClassifier(**flat(**BRIEF)).fit(X, y, validation_data=(X, y))
    probe = LogisticRegression(max_iter=1000).fit(model.coordinates_, y)
    np.testing.assert_allclose(
        model.predict_proba(X), probe.predict_proba(model.coordinates_), atol=1e-4
    )
    weighted = PIEFSClassifier(**flat(class_weight={3: 100.0}, **BRIEF)).fit(X, y)
    assert (weighted.predict(X) == 3).sum() > (model.predict(X) == 3).sum()
    heavier = PIEFSClassifier(**flat(**BRIEF)).fit(X, y, np.full(200, 1e-6))  # only ratios count
    np.testing.assert_allclose(heavier.predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_a_class_without_weight_is_never_predicted_and_one_alone_is_refused():
    X, y = make_blobs(150, centers=3, random_state=0)
    model = PIEFSClassifier(**flat(class_weight={0: 0.0}, **GRAPH)).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert set(model.predict(X)) == {1, 2}
    assert model.score(X[y > 0], y[y > 0]) > 0.9
    with pytest.raises(InputError, match="only one class has rows with a weight"):
        PIEFSClassifier(**flat(class_weight={0: 0.0, 1: 0.0}, **GRAPH)).fit(X, y)


def test_columns_are_scaled_by_all_rows_of_the_graph(moons):
    X, y = moons
    noise = np.where(np.arange(300) < 16, 0, np.random.default_rng(0).normal(0, 100, 300))
    wide = np.c_[X, noise]
    model = PIEFSClassifier(**flat(**BRIEF)).fit(wide[:16], y[:16], X_unlabeled=wide[16:])
    np.testing.assert_allclose(model.scale_, wide.std(axis=0), rtol=1e-5)


def test_what_is_printed_is_the_distance_to_the_graph(moons, capsys):
    PIEFSClassifier(**flat(verbose=1, **BRIEF)).fit(*moons)
    said = capsys.readouterr().out
    assert "distance to the graph " in said
    assert "class loss" not in said


def test_numbers_are_read_out_by_ridge_regression(moons, shape):
    X, _ = moons
    y = np.c_[X[:, 0] ** 2, X[:, 1]]
    model = PIEFSRegressor(**flat(**GRAPH)).fit(X[:50], y[:50], X_unlabeled=X[50:])
    phi = shape.transform(X)
    center, scale = y[:50].mean(axis=0), y[:50].std(axis=0)
    line = RidgeCV(PENALTIES, alpha_per_target=True).fit(phi[:50], (y[:50] - center) / scale)
    expected = line.predict(phi) * scale + center
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-4)


def test_settings_follow_from_all_rows_of_the_graph(moons):
    X, y = moons
    keywords = GRAPH | {"steps_per_component": None, "n_components": 2}
    few = PIEFSClassifier(**flat(**keywords, callbacks=[lambda state: True]))
    alone = few.fit(X[:20], y[:20]).settings_.batch_size
    assert few.fit(X[:20], y[:20], X_unlabeled=X[20:]).settings_.batch_size > alone == 20


def test_a_classifier_by_a_graph_survives_saving_and_a_file_with_gaps(moons, tmp_path):
    X, y = moons
    model = PIEFSClassifier(**flat(**BRIEF)).fit(X[:16], y[:16], X_unlabeled=X[16:])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").predict_proba(X)
    np.testing.assert_array_equal(again, model.predict_proba(X))
    labels = [name if i % 10 == 0 else "" for i, name in enumerate(np.array(["a", "b"])[y])]
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X, labels, strict=True)]
    (tmp_path / "gaps.csv").write_text("\n".join(["u,v,kind", *lines]) + "\n")
    done = piefs(
        *("fit", tmp_path / "gaps.csv", "--target", "kind", "--solver", "spectral"),
        *("-k", "6", "--steps", "200", "--no-report", "--out", tmp_path / "run", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["config"]["solver"] == "spectral"
    assert json.loads(done.stdout)["accuracy"]["train"] > 0.8


def test_joint_training_without_labels_works_too():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    model = PIEFSTransformer(**flat(schedule="joint", **SMALL)).fit(X)
    assert model.gram_error_ < 1e-6
