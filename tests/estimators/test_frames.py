"""Frames with text, categories, dates and gaps go straight into the estimators."""

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from commands import piefs
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.errors import InputError
from piefs.estimators.frames import raw_table

N = 200


def customers(seed=0):
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 1000, N).tolist()
    frame = pd.DataFrame(
        {
            "plan": pd.Categorical(rng.choice(["basic", "pro", "team"], N)),
            "city": rng.choice(["Bonn", "Oslo", "Rome"], N).astype(object),
            "age": rng.normal(40, 10, N),
            "visits": pd.array(rng.integers(0, 9, N), dtype="Int64"),
            "active": rng.uniform(size=N) < 0.5,
            "since": [dt.date(2020, 1, 1) + dt.timedelta(days=day) for day in days],
        }
    )
    left = np.where((frame["plan"] == "basic") & (frame["age"] < 45), "yes", "no")
    frame.loc[::7, "age"] = np.nan
    frame.loc[::9, "visits"] = pd.NA
    frame.loc[::11, "city"] = None
    return frame, left


KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture(scope="module")
def fitted():
    return PIEFSClassifier(4, random_state=0).fit(*customers())


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_all_libraries_are_read_alike(kind, fitted):
    frame, left = customers()
    model = PIEFSClassifier(4, random_state=0).fit(KINDS[kind](frame), left)
    new, truth = customers(1)
    np.testing.assert_allclose(
        model.predict_proba(KINDS[kind](new)), fitted.predict_proba(new), atol=1e-6
    )
    assert model.score(KINDS[kind](new), truth) > 0.8
    assert set(model.predict(KINDS[kind](new))) <= {"no", "yes"}


def test_columns_of_new_rows_are_found_by_name_and_may_have_new_categories(fitted):
    new, _ = customers(1)
    expected = fitted.transform(new)
    turned = new[new.columns[::-1]].assign(more="ignored")
    np.testing.assert_array_equal(fitted.transform(turned), expected)
    new["city"] = "Paris"
    assert np.isfinite(fitted.transform(new)).all()
    with pytest.raises(InputError, match="lacks the column 'plan'"):
        fitted.transform(new.drop(columns="plan"))


def test_regressors_and_transformers_take_them_too():
    frame, _ = customers()
    target = np.nan_to_num(frame["age"], nan=40.0)
    assert PIEFSRegressor(4, random_state=0).fit(frame, target).score(frame, target) > 0.9
    assert PIEFSTransformer(2, random_state=0).fit_transform(frame).shape == (N, 2)


def test_a_model_remembers_how_it_read_the_columns(fitted, tmp_path):
    new, _ = customers(1)
    fitted.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict(new), fitted.predict(new))


def test_models_of_python_and_of_the_command_line_are_used_by_both(fitted, tmp_path):
    new, truth = customers(1)
    table = tmp_path / "new.csv"
    new.assign(left=truth).to_csv(table, index=False)
    fitted.save(tmp_path / "model")
    found = tmp_path / "found.csv"
    assert piefs("predict", tmp_path / "model", table, "--out", found).returncode == 0
    assert pd.read_csv(found)["prediction"].tolist() == fitted.predict(new).tolist()
    done = piefs("score", tmp_path / "model", table, "--target", "left", "--json")
    assert f'"accuracy": {fitted.score(new, truth)}' in done.stdout
    told = [*("fit", table, "--target", "left", "--missing", "impute", "-k", "4", "--no-report")]
    assert piefs(*told, "--out", tmp_path / "run").returncode == 0
    of_run = load(tmp_path / "run")
    assert of_run.classes_.tolist() == ["no", "yes"]
    assert of_run.score(new, truth) > 0.9


def test_plain_numbers_go_on_as_before(fitted):
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [1, 2, 3], "c": [True, False, True]})
    assert raw_table(frame) is None
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model = PIEFSClassifier(2).fit(numbers, numbers["a"] > 0)
    assert not hasattr(model, "table_")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    again = PIEFSClassifier(2).fit(*customers()).fit(numbers, numbers["a"] > 0)
    assert not hasattr(again, "table_")
