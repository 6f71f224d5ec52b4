"""Inputs at the edge of what numbers can hold: right, or refused with what to do."""

import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import make_moons

from commands import piefs
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.data.encoder import MAX_CATEGORIES
from piefs.errors import InputError
from toys import SMALL, flat

pytestmark = pytest.mark.usefixtures("undrawn")
TINY = SMALL | {"n_components": 2, "steps_per_component": 20, "batch_size": 30, "hidden": (8,)}
N = 60


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(N, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def fitted(X, y, estimator=PIEFSClassifier, sample_weight=None, **keywords):
    """A model whose coordinates are finite."""
    if sample_weight is not None:
        model = estimator(**flat(**TINY | keywords)).fit(X, y, sample_weight=sample_weight)
    else:
        model = estimator(**flat(**TINY | keywords)).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    return model


@pytest.fixture(scope="module")
def model(rows):
    return fitted(*rows)


# --- scales ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e30, [1e-30, 1, 1e12]], ids=str)
def test_units_of_columns_do_not_matter(rows, model, scale):
    X, y = rows
    scaled = fitted(X * scale, y)
    np.testing.assert_allclose(scaled.transform(X * scale), model.transform(X), atol=1e-3)


def test_units_do_not_matter_in_single_precision(rows, model):
    X, y = rows
    scaled = (1e30 * X).astype(np.float32)
    np.testing.assert_allclose(fitted(scaled, y).transform(scaled), model.transform(X), atol=1e-3)


@pytest.mark.slow
def test_units_of_a_target_do_not_matter(rows):
    X, _ = rows
    one, tiny, huge = (fitted(X, s * X[:, 0], PIEFSRegressor) for s in (1, 1e-30, 1e30))
    for other, scale in ((tiny, 1e-30), (huge, 1e30)):
        np.testing.assert_allclose(other.predict(X) / scale, one.predict(X), atol=1e-3)


def test_columns_beyond_single_precision_are_refused(rows):
    X, y = rows
    for scale in (1e100, 1e-60):
        with pytest.raises(InputError, match=r"column 0 has mean .* divide it .*float64"):
            fitted(scale * X, y)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e100, 1e-60])
def test_double_precision_takes_columns_beyond_single(rows, scale):
    X, y = rows
    fitted(scale * X, y, dtype="float64")


def test_squares_that_overflow_are_refused(rows):
    X, y = rows
    with pytest.raises(InputError, match=r"column 2 has values whose squares overflow: divide"):
        fitted(X * [1, 1, 1e200], y)
    with pytest.raises(InputError, match="y has values whose squares overflow: divide"):
        fitted(X, 1e300 * X[:, 0], PIEFSRegressor)


@pytest.mark.parametrize("scale", [1e10, 1e30])
def test_inputs_whose_gram_error_would_overflow_are_refused_unless_standardised(rows, scale):
    X, y = rows
    with pytest.raises(InputError, match=r"column 1 reaches .*standardize=True"):
        fitted(X * [1, scale, 1], y, standardize=False)


def test_inputs_beyond_single_precision_are_refused(rows):
    X, y = rows
    far = X * [1, 1, 1e60]
    with pytest.raises(InputError, match="column 2 that float32 cannot hold"):
        fitted(far, y, standardize=False)


def test_new_rows_beyond_single_precision_are_refused_and_those_within_have_answers(rows, model):
    X, _ = rows
    assert np.isfinite(model.predict_proba(1e30 * X)).all()
    far = X.copy()
    far[7, 1] = 1e45
    for method in (model.transform, model.predict, model.predict_proba):
        with pytest.raises(InputError, match="row 7 is so far out in column 1"):
            method(far)


def test_a_single_outlier_leaves_a_finite_model(rows):
    X, y = rows
    X = X.copy()
    X[3, 1] = 1e12
    fitted(X, y)


def test_a_nearly_constant_column_leaves_new_rows_finite(rows):
    X, y = rows
    rare = X.copy()
    rare[:, 2] = 0
    rare[5, 2] = 1e-3
    assert np.isfinite(fitted(rare, y).predict_proba(1e6 * X)).all()


def test_constant_columns_say_nothing(rows):
    X, y = rows
    with_constant = fitted(X * [1, 1, 0] + [0, 0, 5], y)
    moved = X * [1, 1, 0] + [0, 0, 5]
    assert with_constant.scale_[2] == 1
    assert np.isfinite(with_constant.predict_proba(moved)).all()


@pytest.mark.parametrize("estimator", [PIEFSClassifier, PIEFSRegressor, PIEFSTransformer])
def test_rows_that_are_all_the_same_leave_the_prediction_by_chance(rows, estimator):
    _, y = rows
    X = np.tile([1.0, 2.0, 3.0], (N, 1))
    constant = fitted(X, y, estimator)
    if estimator is not PIEFSTransformer:
        assert len(np.unique(constant.predict(X))) == 1


# --- types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float16", "uint8", "bool"])
def test_numbers_of_any_type_are_taken_as_numbers(rows, kind):
    X, y = rows
    X = (3 * np.abs(X)).astype(kind)
    as_doubles = fitted(X.astype(np.float64), y)
    np.testing.assert_array_equal(fitted(X, y).transform(X), as_doubles.transform(X))


def test_nullable_columns_are_numbers_and_their_gaps_are_filled(rows):
    X, y = rows
    frame = pd.DataFrame(
        {
            "whole": pd.array(np.arange(N) % 7, dtype="Int64"),
            "real": pd.array(X[:, 0], dtype="Float64"),
            "truth": pd.array(y > 0, dtype="boolean"),
        }
    )
    plain = frame.astype(float)
    labels = pd.Series(pd.array(y, dtype="Int64"))
    np.testing.assert_array_equal(
        fitted(frame, labels).transform(frame), fitted(plain, y).transform(plain)
    )
    frame.loc[3, "whole"] = pd.NA
    assert np.isfinite(fitted(frame, y).transform(frame)).all()


@pytest.mark.parametrize("form", ["csr", "coo", "dok"])
def test_sparse_matrices_are_refused_with_what_to_do(rows, model, form):
    X, y = rows
    for sparse in (scipy.sparse.csr_matrix(X).asformat(form), scipy.sparse.csr_array(X)):
        with pytest.raises(TypeError, match="toarray"):
            fitted(sparse, y)
        with pytest.raises(TypeError, match="toarray"):
            model.predict(sparse)


# --- shapes ------------------------------------------------------------------------------------


def test_one_row_gets_the_answer_it_has_among_others(rows, model):
    X, _ = rows
    np.testing.assert_allclose(model.transform(X[:1]), model.transform(X)[:1], atol=1e-6)


def test_no_rows_are_refused(rows, model):
    X, _ = rows
    with pytest.raises(ValueError, match=re.escape("0 sample(s)")):
        model.predict(X[:0])


def test_fewer_rows_than_maps_are_refused_and_as_many_do(rows):
    X, _ = rows
    y = np.array([0, 1, 0, 1])
    with pytest.raises(InputError, match="n_components=6 is more than the 4 rows"):
        fitted(X[:4], y, n_components=6)
    with pytest.raises(InputError, match="n_components=2 is more than the 1 rows"):
        fitted(X[:1], None, PIEFSTransformer)
    fitted(X[:2], y[:2], batch_size=2)


@pytest.mark.slow
def test_more_maps_than_columns_and_a_single_column_do(rows):
    X, y = rows
    assert fitted(X[:, :1], y, n_components=4).transform(X[:, :1]).shape == (N, 4)


# --- labels and weights ------------------------------------------------------------------------


def test_labels_that_cannot_be_learned_from_are_refused(rows):
    X, y = rows
    with pytest.raises(InputError, match="only one class, '0'"):
        fitted(X, np.zeros(N, int))
    gap = np.where(np.arange(N) == 3, np.nan, y)
    for estimator in (PIEFSClassifier, PIEFSRegressor):
        with pytest.raises(ValueError, match="y contains NaN"):
            fitted(X, gap, estimator)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted(X, np.append(y, 1))


@pytest.mark.slow
def test_a_class_of_one_row_is_a_class(rows):
    X, y = rows
    y = np.where(np.arange(N) == 0, 2, y)
    assert fitted(X, y).predict_proba(X).shape == (N, 3)


@pytest.mark.slow
def test_ten_thousand_classes_are_predicted_in_bounded_memory():
    """A matrix of all probabilities would be of 1.6 GB."""
    y = np.arange(20_000) % 10_000
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    keywords = {"steps_per_component": 1, "log_every": 1, "n_components": 2}
    model = fitted(X, y, **keywords)
    tracemalloc.start()
    assert model.predict(X).shape == y.shape
    assert tracemalloc.get_traced_memory()[1] < 0.4e9
    tracemalloc.stop()


def test_weights_that_numbers_cannot_hold_are_refused(rows):
    X, y = rows
    ones = np.ones(N)
    for weight, said in (
        (0 * ones, "zero"),
        (1e200 * ones, "divide them by their mean"),
        (1e-40 * ones, "divide them by their mean"),
        (np.where(np.arange(N), 1, -1), "[Nn]egative"),
        (np.where(np.arange(N), 1, np.nan), "NaN"),
    ):
        for estimator in (PIEFSClassifier, PIEFSRegressor):
            with pytest.raises(ValueError, match=said):
                fitted(X, y, estimator, sample_weight=weight)


@pytest.mark.parametrize("scale", [2.0**30])
def test_only_ratios_of_weights_count(rows, scale):
    X, y = rows
    weight = np.linspace(0, 1, N)  # the first row counts for nothing
    one, other = (fitted(X, y, sample_weight=w) for w in (weight, scale * weight))
    np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-5)


@pytest.mark.slow
def test_flipped_labels_are_learned_with_a_word_on_overfitting():
    X, y = make_moons(240, noise=0.2, random_state=0)
    flipped = np.where(np.random.default_rng(0).random(240) < 0.3, 1 - y, y)
    keywords = {"steps_per_component": 600, "hidden": (32, 32), "learning_rate": 0.02}
    keywords |= {"smoothness": 0.0, "weight_decay": 0.0}
    model = PIEFSClassifier(**flat(**TINY | keywords))
    model.fit(X[:60], flipped[:60], validation_data=(X[60:], flipped[60:]))
    assert {finding.kind for finding in model.warnings_} & {"overfitting", "saturated"}


# --- from a file -------------------------------------------------------------------------------


@pytest.fixture
def table(rows, tmp_path):
    def written(**columns):
        X, y = rows
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y} | columns)
        frame.to_csv(tmp_path / "table.csv", index=False)
        return tmp_path

    return written


def fit_file(folder):
    few = ["-k", "2", "--steps", "20", "--quiet"]
    return piefs("fit", folder / "table.csv", "--target", "label", "--out", folder / "run", *few)


@pytest.mark.slow
def test_a_column_of_a_file_whose_squares_overflow_is_refused_in_a_line(table, rows):
    X, _ = rows
    done = fit_file(table(c=1e200 * X[:, 2]))
    assert done.returncode == 2
    assert "squares overflow" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_texts_of_very_many_values_take_few_columns(table):
    folder = table(c=[f"text {i % 25}" for i in range(N)])
    done = fit_file(folder)
    assert done.returncode == 0, done.stderr
    assert load(folder / "run" / "model").n_features_in_ == 2 + MAX_CATEGORIES
