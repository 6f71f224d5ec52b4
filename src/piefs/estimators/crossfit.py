"""Honest coordinates of training rows: each row's from a model that has not seen it.

Coordinates that were shaped by labels flatter the rows they were fitted on, and whatever is trained
on them next believes it. Cross-fitting gives each fold the coordinates of a model of the others.
Such models agree on the space and not on its axes, so each is turned to the axes of the model of
all rows, by the rotation that fits best on the rows that both have seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from piefs.data.rows import is_lazy, taken
from piefs.errors import InputError

N_FOLDS = 5

Scores = dict[str, float] | None
"""The score on the training rows, and on rows left out; None if there is nothing to score."""


def check_folds(cross_fit: bool | int, X: Any) -> int:
    """The number of folds that `cross_fit` asks for."""
    n_folds, n = N_FOLDS if cross_fit is True else cross_fit, _num_samples(X)
    if not 2 <= n_folds <= n:
        raise InputError(f"cross_fit={cross_fit} must be a number of folds, from 2 to the {n} rows")
    return n_folds


def cross_fitted(
    estimator: Any, X: Any, y: Any, n_folds: int, fit_params: dict[str, Any]
) -> tuple[np.ndarray, Scores]:
    """Coordinates of all rows by models of other rows, turned to those of the fitted estimator."""
    whole = estimator._coordinates(X)
    honest, scores = np.empty_like(whole), []
    for train, held in _folds(estimator, X, y, n_folds):
        fold: Any = clone(estimator)
        fold.set_params(random_state=estimator.seed_, callbacks=None)
        params = dict(fit_params)
        if params.get("sample_weight") is not None:  # of these, it alone belongs to the rows of X
            params["sample_weight"] = _safe_indexing(params["sample_weight"], train)
        fold.fit(_rows_at(X, train), None if y is None else _safe_indexing(y, train), **params)
        phi = fold._coordinates(X)
        turn, _ = orthogonal_procrustes(phi[train], whole[train])
        honest[held] = phi[held] @ turn
        if hasattr(fold, "score"):
            scores.append(fold.score(_rows_at(X, held), _safe_indexing(y, held)))
    if not scores:
        return honest, None
    return honest, {"train": estimator.score(X, y), "held_out": float(np.mean(scores))}


def left_out_scores(estimator: Any, X: Any, y: Any) -> Scores:
    """The scores if the coordinates of rows left out are known in closed form."""
    if not hasattr(estimator, "score"):
        return None
    outputs = estimator.model_.readout(estimator.left_out_[: len(y)])
    if is_classifier(estimator):
        held_out = accuracy_score(y, estimator.classes_[outputs.argmax(axis=1)])
    else:
        numbers = outputs * estimator.target_scale_ + estimator.target_center_
        held_out = r2_score(np.reshape(y, numbers.shape), numbers)
    return {"train": estimator.score(X, y), "held_out": float(held_out)}


def _rows_at(X: Any, rows: np.ndarray) -> Any:
    return taken(X, rows) if is_lazy(X) else _safe_indexing(X, rows)


def _folds(estimator: Any, X: Any, y: Any, n_folds: int) -> Any:
    stratified = is_classifier(estimator) and np.unique(y, return_counts=True)[1].min() >= n_folds
    splitter = StratifiedKFold if stratified else KFold
    folds = splitter(n_folds, shuffle=True, random_state=estimator.seed_)
    return folds.split(np.zeros(_num_samples(X)), y if stratified else None)
