"""Honest coordinates of training rows: each row's from a model that has not seen it.

Coordinates that were shaped by labels flatter the rows they were fitted on, and whatever is trained
on them next believes it. Cross-fitting gives each fold the coordinates of a model of the others.
Such models agree on the space and not on its axes, so each is turned to the axes of the model of
all rows, by the rotation that fits best on the rows that both have seen.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
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
from piefs.training.parallel import Workers, open_workers

N_FOLDS = 5


def check_folds(cross_fit: bool | int, X: Any) -> int:
    """The number of folds that `cross_fit` asks for."""
    n_folds, n = N_FOLDS if cross_fit is True else cross_fit, _num_samples(X)
    if not 2 <= n_folds <= n:
        raise InputError(f"cross_fit={cross_fit} must be a number of folds, from 2 to the {n} rows")
    return n_folds


def fold_workers(
    estimator: Any, X: Any, y: Any, fit_params: dict[str, Any], dask: Any
) -> AbstractContextManager[Workers]:
    """Who fits the folds: this process, or the workers of a Dask scheduler, which must answer."""
    if dask is not None and is_lazy(X):
        raise InputError("rows that are read from a file do not travel: give dask= an X in memory")
    fold: Any = clone(estimator)
    fold.set_params(callbacks=None)
    fold.__dict__.pop("_skl_callbacks", None)  # scikit-learn's, which clones keep
    return open_workers(fold_fitted, (fold, X, y, fit_params), dask=dask)


def fold_fitted(
    common: tuple[Any, ...], i: int, train: np.ndarray, held: np.ndarray, seed: int
) -> tuple[np.ndarray, float | None]:
    """Coordinates of all rows by a model of the training rows, and its score on the others."""
    estimator, X, y, fit_params = common
    fold: Any = clone(estimator)
    fold.set_params(random_state=seed)
    params = dict(fit_params)
    if params.get("sample_weight") is not None:  # of these, it alone belongs to the rows of X
        params["sample_weight"] = _safe_indexing(params["sample_weight"], train)
    fold.fit(_rows_at(X, train), None if y is None else _safe_indexing(y, train), **params)
    score = (
        fold.score(_rows_at(X, held), _safe_indexing(y, held)) if hasattr(fold, "score") else None
    )
    return fold._coordinates(X), score


def cross_fitted(
    estimator: Any, X: Any, y: Any, n_folds: int, workers: Workers
) -> tuple[np.ndarray, dict[str, float] | None]:
    """Coordinates of all rows from models of other rows, turned to those of a fitted estimator.

    Beside them the score of the estimator on its own rows, and that of the folds' models on rows
    they have not seen; none where there is nothing to score.
    """
    whole = estimator._coordinates(X)
    honest = np.empty_like(whole)
    scores: dict[int, Any] = {}
    folds = enumerate(_folds(estimator, X, y, n_folds))
    for ended in workers.run((i, train, held, estimator.seed_) for i, (train, held) in folds):
        i, train, held, _ = ended.job
        phi, scores[i] = ended.result()
        turn, _ = orthogonal_procrustes(phi[train], whole[train])
        honest[held] = phi[held] @ turn
    if not hasattr(estimator, "score"):
        return honest, None
    held_out = float(np.mean([scores[i] for i in sorted(scores)]))
    return honest, {"train": estimator.score(X, y), "held_out": held_out}


def left_out_scores(estimator: Any, X: Any, y: Any) -> dict[str, float] | None:
    """The score on the training rows, and on their coordinates as if each had been left out."""
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
