"""Fitting rows that are read from files: the same models as from memory, for the same batches."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.data import rows as data_rows
from piefs.data.binary import parquet_rows
from piefs.data.rows import GroupedRows, spooled
from piefs.errors import InputError
from piefs.training import evaluation
from toys import flat

SETTINGS = {
    "n_components": 3,
    "hidden": (8, 8),
    "steps_per_component": 30,
    "batch_size": 16,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(700, 4)) * [1, 10, 0.1, 3] + [0, 5, 0, -2]).astype(np.float32)
    return x, (x[:, 0] > 0).astype(int)


def lazily(x, how, folder):
    if how == "mapped":
        np.save(folder / "x.npy", x)
        return np.load(folder / "x.npy", mmap_mode="r")
    if how == "chunks":
        return spooled(x[i : i + 50] for i in range(0, len(x), 50))
    columns = {f"c{i}": x[:, i] for i in range(x.shape[1])}
    parquet.write_table(pa.table(columns), folder / "x.parquet", row_group_size=90)
    return parquet_rows([folder / "x.parquet"], list(columns))


@pytest.fixture(scope="module")
def in_memory(table):
    """A model of the same batches, from memory."""
    x, y = table
    return PIEFSClassifier(**flat(**SETTINGS, shuffle_window=128, early_stopping=False)).fit(x, y)


@pytest.mark.parametrize("how", ["mapped", "chunks", "parquet"])
def test_a_model_of_rows_in_a_file_is_that_of_rows_in_memory(table, in_memory, tmp_path, how):
    x, y = table
    rows = lazily(x, how, tmp_path)
    from_file = PIEFSClassifier(**flat(**SETTINGS, shuffle_window=128, early_stopping=False)).fit(
        rows, y
    )
    np.testing.assert_array_equal(from_file.transform(x), in_memory.transform(x))
    np.testing.assert_array_equal(from_file.predict_proba(rows), in_memory.predict_proba(x))
    assert from_file.gram_error_ == in_memory.gram_error_


@pytest.mark.slow
def test_the_papers_model_of_rows_in_a_file_is_that_of_rows_in_memory(table, tmp_path):
    x, y = table
    model = PIEFSClassifier(
        **flat(**SETTINGS, preset="paper", shuffle_window=128, early_stopping=False)
    )
    from_memory = model.fit(x, y).transform(x)
    from_file = model.fit(lazily(x, "parquet", tmp_path), y).transform(x)
    np.testing.assert_array_equal(from_file, from_memory)


@pytest.mark.slow
def test_regressors_and_transformers_read_files_too(table, tmp_path):
    x, _ = table
    rows, y = lazily(x, "parquet", tmp_path), x[:, 1] * x[:, 0]
    regressor = PIEFSRegressor(early_stopping=False, **SETTINGS).fit(rows, y)
    assert regressor.predict(rows).shape == (700,)
    alone = PIEFSTransformer(**flat(supervised=False, schedule="joint", **SETTINGS)).fit(rows)
    assert alone.transform(rows).shape == (700, 3)


def test_rows_of_a_file_are_shuffled_within_a_window_by_default(table, tmp_path):
    x, y = table
    model = PIEFSClassifier(early_stopping=False, **SETTINGS)
    assert model.fit(lazily(x, "mapped", tmp_path), y).settings_.optimizer.shuffle_window == 2**17
    assert model.fit(x, y).settings_.optimizer.shuffle_window is None


def test_gaps_in_a_file_are_named(table, in_memory):
    x, y = table
    spoiled = x.copy()
    spoiled[654, 2] = np.nan
    rows = GroupedRows(lambda i: spoiled[70 * i : 70 * i + 70], range(0, 701, 70), 4, np.float32)
    with pytest.raises(InputError, match="column 2 has gaps"):
        PIEFSClassifier(**SETTINGS, early_stopping=False).fit(rows, y)
    with pytest.raises(InputError, match="row 654, column 2"):
        in_memory.predict(rows)


def test_groups_that_are_slow_in_any_order_are_decoded_once_for_a_fit(
    table, in_memory, monkeypatch
):
    monkeypatch.setattr("piefs.estimators.rows.FIRST_ROWS", 100)
    x, y = table
    reads = []

    def read(i):
        reads.append(i)
        return x[100 * i : 100 * i + 100]

    rows = GroupedRows(read, range(0, 701, 100), 4, np.float32)
    model = PIEFSClassifier(**flat(**SETTINGS, early_stopping=False, shuffle_window=128)).fit(
        rows, y
    )
    assert len(reads) == 2 * 7  # for the scaling, and to be spooled
    np.testing.assert_array_equal(model.coordinates_, in_memory.coordinates_)


@pytest.mark.slow
def test_validation_rows_are_set_aside_from_a_file_without_reading_all_of_it(
    table, tmp_path, monkeypatch
):
    monkeypatch.setattr(data_rows, "IN_MEMORY_BYTES", 1000)
    x, y = table
    rows = lazily(x, "mapped", tmp_path)
    keywords = SETTINGS | {"early_stopping": True, "log_every": 10}
    model = PIEFSClassifier(**flat(**keywords)).fit(rows, y)
    assert "validation_accuracy" in model.history_[-1]
    np.testing.assert_allclose(model.coordinates_, model.transform(x), atol=1e-5)


def test_predictions_of_many_rows_are_those_of_all_at_once(table, in_memory, monkeypatch):
    x, _ = table
    model = in_memory
    whole = model.predict_proba(x), model.predict(x), model.decision_function(x)
    monkeypatch.setattr(evaluation, "BLOCK_ELEMENTS", 200)
    for found, expected in zip(
        (model.predict_proba(x), model.predict(x), model.decision_function(x)), whole, strict=True
    ):
        # A logit near zero is a sum of larger terms, each rounded to single precision.
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_what_cannot_be_done_with_a_file_is_said_before_training(table, in_memory, tmp_path):
    x, y = table
    rows = lazily(x, "parquet", tmp_path)
    with pytest.raises(InputError, match="X_unlabeled"):
        PIEFSClassifier(**SETTINGS, early_stopping=False).fit(rows, y, X_unlabeled=x)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PIEFSClassifier(**SETTINGS).fit(rows, y[:-1])
    with pytest.raises(ValueError, match="4 features"):
        in_memory.predict(parquet_rows([tmp_path / "x.parquet"], ["c0"]))
