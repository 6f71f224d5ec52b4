"""The estimators among others: frames of three libraries, columns of text, searches, skops."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from piefs import PIEFSClassifier, PIEFSTransformer
from piefs.errors import InputError
from toys import flat

QUICK = {
    **{"n_components": 2, "steps_per_component": 5, "early_stopping": False, "random_state": 0},
    **{"hidden": (8,), "batch_size": 32},
}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
PLANS = np.array(["basic", "gold", "plus"])[np.arange(90) % 3]
Y = np.array(["stays", "leaves"])[((X[:, 0] > 0) ^ (PLANS == "gold")).astype(int)]
COLUMNS = {name: X[:, j] for j, name in enumerate("abc")}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(scope="module")
def model():
    return PIEFSClassifier(**QUICK).fit(X, Y)


@pytest.mark.parametrize("library", FRAMES)
def test_frames_go_in_and_coordinates_come_out(model, library):
    frame = FRAMES[library](COLUMNS)
    fitted = clone(model).fit(frame, FRAMES[library]({"y": Y})["y"])
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    phi = fitted.transform(frame)
    np.testing.assert_array_equal(phi, model.transform(X))
    for asked, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = fitted.set_output(transform=asked).transform(frame)
        assert isinstance(out, kind)
        assert list(out.columns) == ["phi1", "phi2"]
        np.testing.assert_array_equal(out.to_numpy(), phi)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(FRAMES[library](dict.fromkeys("acb", X[:, 0])))


def test_arrays_of_text_are_refused(model):
    with pytest.raises(InputError, match="X holds text"):
        clone(model).fit(np.column_stack([PLANS, PLANS]), Y)
    with pytest.raises(InputError, match="X holds text"):
        clone(model).fit(np.array([[1.0, "a"]] * 90, dtype=object), Y)


def test_the_way_that_the_message_shows_works_and_can_be_searched():
    frame = pd.DataFrame(COLUMNS | {"plan": PLANS})
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["plan"]), remainder="passthrough"
    )
    pipeline = make_pipeline(encoder, PIEFSClassifier(**QUICK)).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"piefsclassifier__smoothness": [1e-3, 1e-2]}, cv=2)
    search.fit(frame, Y)
    assert set(search.predict(frame)) <= set(Y)
    names = search.best_estimator_[-1].feature_names_in_.tolist()
    assert names[:3] == [f"onehotencoder__plan_{plan}" for plan in ("basic", "gold", "plus")]


def same(loaded, model):
    assert type(loaded.model_) is type(model.model_)
    assert loaded.settings_ == model.settings_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.coordinates_, model.coordinates_)
    assert loaded.get_params() == model.get_params()


def test_skops_has_to_trust_the_estimator_alone(model):
    content = skops.io.dumps(model)
    trusted = ["piefs.estimators.classifier.PIEFSClassifier"]
    assert skops.io.get_untrusted_types(data=content) == trusted
    loaded = skops.io.loads(content, trusted=trusted)
    same(loaded, model)
    assert loaded.fit(X, Y).n_iter_ == model.n_iter_


def test_pickles_hold_plain_values_and_come_back_whole(model):
    content = pickle.dumps(model)
    assert b"equinox" not in content
    assert b"piefs.training" not in content
    same(pickle.loads(content), model)
    assert pickle.loads(pickle.dumps(PIEFSClassifier(**QUICK))).get_params()["hidden"] == (8,)


def test_learned_metrics_and_precision_survive():
    double = PIEFSTransformer(**flat(metric="diag", dtype="float64", **QUICK)).fit(X, Y)
    types = ["piefs.estimators.transformer.PIEFSTransformer"]
    loaded = skops.io.loads(skops.io.dumps(double), trusted=types)
    assert loaded.transform(X).dtype == np.float64
    np.testing.assert_array_equal(loaded.transform(X), double.transform(X))
    assert type(loaded.model_.metric) is type(double.model_.metric)


def test_a_pipeline_with_piefs_in_it_is_a_skops_file_too(model):
    pipeline = make_pipeline(OneHotEncoder(sparse_output=False), model)
    types = skops.io.get_untrusted_types(data=skops.io.dumps(pipeline))
    assert types == ["piefs.estimators.classifier.PIEFSClassifier"]
