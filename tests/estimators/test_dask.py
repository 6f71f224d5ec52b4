"""Dask collections: the same numbers as from memory, and none before they are asked for."""

import pickle

import dask
import numpy as np
import pandas as pd
import pytest
from dask import array as da
from dask import dataframe as dd

from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.errors import InputError
from piefs.estimators.dask import _to_send
from toys import SMALL, flat

TINY = SMALL | {"steps_per_component": 20}
METHODS = ("transform", "predict", "predict_proba", "predict_log_proba", "decision_function")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frame(moons):
    return pd.DataFrame(moons[0], columns=["a", "b"], index=np.arange(300) * 2)


@pytest.fixture(scope="module")
def labels(moons):
    return np.array(["no", "yes"])[moons[1]]


@pytest.fixture(scope="module")
def of_array(moons, labels):
    return PIEFSClassifier(**flat(**TINY)).fit(moons[0], labels)


@pytest.fixture(scope="module")
def of_frame(frame, labels):
    return PIEFSClassifier(**flat(**TINY)).fit(frame, labels)


@pytest.fixture
def framed(of_frame):
    """The model of a frame, asked for frames."""
    yield of_frame.set_output(transform="pandas")
    of_frame.set_output(transform="default")


def same(found, expected):
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "U":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_an_array_gives_an_array_whose_numbers_are_those_from_memory(method, of_array, moons):
    rows = da.from_array(moons[0], chunks=(128, 1))  # columns in several chunks, too
    found, expected = getattr(of_array, method)(rows), getattr(of_array, method)(moons[0])
    assert isinstance(found, da.Array)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    same(found.compute(), expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_frame_gives_an_array_whose_numbers_are_those_from_memory(method, of_frame, frame):
    found = getattr(of_frame, method)(dd.from_pandas(frame, npartitions=3))
    assert isinstance(found, da.Array)
    same(found.compute(), getattr(of_frame, method)(frame))


def test_regressors_and_transformers_take_them_too(moons):
    rows = da.from_array(moons[0], chunks=128)
    numbers = PIEFSRegressor(**flat(**TINY)).fit(moons[0], moons[0])
    same(numbers.predict(rows).compute(), numbers.predict(moons[0]))
    unsupervised = PIEFSTransformer(**flat(**TINY)).fit(moons[0])
    same(unsupervised.transform(rows).compute(), unsupervised.transform(moons[0]))


def test_nothing_is_read_before_it_is_asked_for(of_array, of_frame):
    def explode(*args):
        raise AssertionError("rows were read")

    rows = da.zeros((10**9, 2), chunks=(10**6, 2)).map_blocks(explode, meta=np.zeros((0, 2)))
    found = of_array.predict_proba(rows)
    assert found.shape == (10**9, 2)
    with pytest.raises(AssertionError, match="rows were read"):
        found[:10].compute()
    table = dd.from_map(explode, range(4), meta=pd.DataFrame({"a": [0.0], "b": [0.0]})[:0])
    of_frame.predict(table)


def test_chunks_of_unknown_or_no_size_are_fine(of_array, of_frame, moons, frame):
    rows = da.from_array(moons[0], chunks=100)
    few = rows[rows[:, 0] > 1.5]
    expected = moons[0][moons[0][:, 0] > 1.5]
    same(of_array.transform(few).compute(), of_array.transform(expected))
    same(of_array.predict(few).compute(), of_array.predict(expected))
    table = dd.from_pandas(frame, npartitions=3)
    same(of_frame.predict(table[table.a > 99]).compute(), of_frame.predict(frame)[:0])
    ordered = frame.sort_values("a", ignore_index=True)
    table = dd.from_pandas(ordered, npartitions=3)
    last = table[table.a > 1.5]  # only in the last partition
    same(of_frame.transform(last).compute(), of_frame.transform(ordered[ordered.a > 1.5]))


def test_set_output_decides_what_comes_out(framed, of_array, frame, moons):
    found = framed.transform(dd.from_pandas(frame, npartitions=3))
    assert list(found.columns) == list(framed.get_feature_names_out())
    assert found.divisions == (0, 200, 400, 598)
    pd.testing.assert_frame_equal(found.compute(), framed.transform(frame))
    assert isinstance(framed.predict(dd.from_pandas(frame, npartitions=3)), da.Array)
    of_array.set_output(transform="pandas")
    try:
        found = of_array.transform(da.from_array(moons[0], chunks=100))
        pd.testing.assert_frame_equal(found.compute(), of_array.transform(moons[0]))
        of_array.set_output(transform="polars")
        with pytest.raises(InputError, match="made of pandas"):
            of_array.transform(da.from_array(moons[0], chunks=100))
    finally:
        of_array.set_output(transform="default")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table[["b", "a"]], "same order"),
        (lambda table: table.rename(columns={"a": "z"}), "unseen at fit time"),
        (lambda table: table.assign(b="x"), "no numbers: \\['b'\\]"),
    ],
)
def test_columns_are_checked_by_name_at_once(change, reason, of_frame, frame):
    with pytest.raises(ValueError, match=reason):
        of_frame.transform(change(dd.from_pandas(frame, npartitions=2)))


def test_what_is_no_table_is_refused_at_once(of_array):
    with pytest.raises(ValueError, match="expecting 2 features"):
        of_array.predict(da.zeros((10, 3)))
    for no_table in (da.zeros(10), dask.delayed(1)):
        with pytest.raises(InputError, match="takes a Dask array"):
            of_array.predict(no_table)


def wide(n=900):
    """More rows than a piece or a block of the test below."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    return x, (x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.fixture
def small_pieces(monkeypatch):
    """Three pieces of four blocks each."""
    monkeypatch.setattr("piefs.estimators.dask.CHUNK_ROWS", 400)
    monkeypatch.setattr("piefs.training.features.BLOCK_ROWS", 100)
    monkeypatch.setattr("piefs.training.evaluation.BLOCK_ROWS", 100)
    monkeypatch.setattr("piefs.estimators.rows.SCALING_ROWS", 400)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_of_far_rows_is_that_of_rows_in_memory(small_pieces, monkeypatch, weighted):
    monkeypatch.setattr("piefs.training.features.KEPT_ELEMENTS", 10_000)
    x, y = wide()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(x)) if weighted else None
    near = PIEFSClassifier(4, random_state=0).fit(x, y, weight)
    rows, labels = da.from_array(x, chunks=(70, 2)), da.from_array(y, chunks=500)
    far = PIEFSClassifier(4, random_state=0).fit(rows, labels, weight)
    np.testing.assert_allclose(far.coordinates_, near.coordinates_, atol=1e-8)
    np.testing.assert_allclose(far.left_out_, near.left_out_, atol=1e-8)
    np.testing.assert_allclose(far.predict_proba(x), near.predict_proba(x), atol=1e-8)


def test_a_frame_is_fitted_with_its_names(small_pieces):
    x, _y = wide()
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    far = PIEFSRegressor(3, random_state=0).fit(dd.from_pandas(table, npartitions=3), x[:, 0] ** 2)
    near = PIEFSRegressor(3, random_state=0).fit(table, x[:, 0] ** 2)
    assert far.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(far.predict(table), near.predict(table), atol=1e-8)


def test_networks_are_fitted_on_a_copy_of_far_rows(moons, labels):
    found = PIEFSClassifier(**flat(**TINY)).fit(da.from_array(moons[0], chunks=90), labels)
    same(
        found.predict(moons[0]),
        PIEFSClassifier(**flat(**TINY)).fit(*moons[:1], labels).predict(moons[0]),
    )


def test_gaps_in_far_rows_are_refused():
    x, y = wide(200)
    x[150, 1] = np.nan
    with pytest.raises(InputError, match="column 1 has gaps"):
        PIEFSClassifier(2).fit(da.from_array(x, chunks=60), y)


def test_what_travels_is_small_and_the_estimator_stays_as_it_was(of_frame, frame):
    callbacks = of_frame.callbacks
    sent = _to_send(of_frame, None, "pandas").compute()
    assert len(pickle.dumps(sent)) < len(pickle.dumps(of_frame)) - of_frame.coordinates_.nbytes
    assert list(of_frame.feature_names_in_) == ["a", "b"]
    assert of_frame.callbacks is callbacks
    assert isinstance(of_frame.transform(frame), np.ndarray)
