"""What a user passes for X and y, as arrays; text among numbers gets an answer that helps."""

from typing import Any

import numpy as np
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from piefs.data.rows import Rows, is_lazy
from piefs.errors import InputError


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection, found without importing Dask."""
    return hasattr(X, "__dask_graph__")


def is_frame(X: Any) -> bool:
    """Whether X has named columns: a frame of pandas or polars, or a table of pyarrow."""
    return hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "shape"))


def checked_arrays(estimator: Any, X: Any, *y: Any, **keywords: Any) -> Any:
    """X, or X and y, as scikit-learn checks them, and X as numbers whatever frame it came in.

    Rows that are read when needed stay what they are.
    """
    if is_dask(X):
        from piefs.estimators.dask import DaskRows

        _check_feature_names(estimator, X._meta, reset=keywords.get("reset", True))
        X, y = DaskRows(X), tuple(one.compute() if is_dask(one) else one for one in y)
        keywords["names_are_checked"] = True
    if is_lazy(X):
        return _checked_lazily(estimator, X, *y, **keywords)
    reset = keywords.get("reset", True)
    if reset:
        vars(estimator).pop("table_", None)  # of an earlier fit
    if is_frame(X):
        from piefs.estimators.frames import encoded

        X = encoded(estimator, X, reset=reset)
    try:
        checked: Any = validate_data(estimator, X, *y, dtype="numeric", **keywords)
        return (_numbers(checked[0]), *checked[1:]) if y else _numbers(checked)
    except (TypeError, ValueError) as error:
        names = _not_numbers(X)
        if not names and not (isinstance(error, ValueError) and "string" in str(error)):
            raise
        said = (
            f"X has columns that are no numbers: {names}; this model was fitted on numbers alone"
            if names
            else "X holds text, and an array needs numbers: give a frame of pandas or polars, "
            "whose columns of text, categories and dates are encoded"
        )
        raise InputError(said) from error


def _checked_lazily(
    estimator: Any,
    X: Rows,
    *y: Any,
    reset: bool = True,
    multi_output: bool = False,
    names_are_checked: bool = False,
    **_: Any,
) -> Any:
    """The same without a look at all numbers, which would take a pass: gaps are met in reading."""
    if len(X.shape) != 2 or not len(X) or np.dtype(X.dtype).kind not in "biuf":
        raise InputError(
            f"rows that are read when needed form a matrix of numbers, not {X.dtype}{list(X.shape)}"
        )
    if not names_are_checked:
        _check_feature_names(estimator, X, reset=reset)
    _check_n_features(estimator, X, reset=reset)
    if not y:
        return X
    unchanged: Any = None  # the annotation of check_array knows only of names of types
    if multi_output:
        targets = check_array(y[0], ensure_2d=False, dtype=unchanged)
    else:
        targets = column_or_1d(y[0])
    check_consistent_length(X, targets)
    return X, targets


def _numbers(X: np.ndarray) -> np.ndarray:
    """scikit-learn leaves what polars, pyarrow and categorical columns hold as objects."""
    return X.astype(np.float64) if X.dtype == object else np.asarray(X)


def _not_numbers(X: Any) -> list[str]:
    """The names of a frame's columns that cannot be read as numbers; none for an array."""
    names = getattr(X, "column_names", getattr(X, "columns", ()))  # pyarrow; pandas and polars
    found = []
    for name in names:
        try:
            np.asarray(X[name]).astype(np.float64)
        except (TypeError, ValueError):
            found.append(str(name))
    return found
