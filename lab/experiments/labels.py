"""Few labels: all images of MNIST, of which only some have a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from lab.experiments.data import Task
from lab.experiments.methods import Method
from piefs import PIEFSClassifier, PIEFSTransformer
from reproduction.baselines import make_baseline

LABEL_COUNTS = (10, 30, 100, 300, 1000)
"""Labels a class."""

POOL = 10_000  # rows without labels: what scikit-learn's graph methods can still take


def labelled_rows(y: np.ndarray, n: int, seed: int) -> np.ndarray:
    """n rows of each class, at random."""
    rng = np.random.default_rng([seed, n])
    return np.concatenate([rng.permutation(np.flatnonzero(y == c))[:n] for c in np.unique(y)])


def few_labels(name: str, n: int, seed: int) -> Method:
    """The method as a function of a task of which it may see n labels a class."""

    def fit(task: Task, fit_seed: int) -> Any:
        rows = labelled_rows(task.y, n, seed)
        rest = np.setdiff1d(np.random.default_rng(seed).permutation(len(task.y))[:POOL], rows)
        return LABEL_METHODS[name](task.x[rows], task.y[rows], task.x[rest], fit_seed)

    return fit


def _ours(x: np.ndarray, y: np.ndarray, pool: np.ndarray, seed: int) -> Any:
    return PIEFSClassifier(standardize=False, random_state=seed).fit(x, y)


def _ours_with_pool(x: np.ndarray, y: np.ndarray, pool: np.ndarray, seed: int) -> Any:
    """The labels' cross-entropy, orthogonality and smoothness on all rows."""
    model = PIEFSClassifier(standardize=False, random_state=seed)
    return model.fit(x, y, X_unlabeled=pool)


def _ours_from_graph(x: np.ndarray, y: np.ndarray, pool: np.ndarray, seed: int) -> Any:
    """The same, begun from maps distilled from a graph of rows with and without labels."""
    model = PIEFSClassifier(standardize=False, pretraining="graph-laplacian", random_state=seed)
    return model.fit(x, y, X_unlabeled=pool)


def _ours_probed(x: np.ndarray, y: np.ndarray, pool: np.ndarray, seed: int) -> Any:
    """Coordinates learned without any label from all rows, a logistic regression on the few."""
    features = PIEFSTransformer(supervised=False, standardize=False, random_state=seed)
    features.fit(np.concatenate([x, pool]))
    probe = LogisticRegression(max_iter=1000).fit(features.transform(x), y)
    return make_pipeline(features, probe)


def _baseline(name: str) -> Any:
    return lambda x, y, pool, seed: make_baseline(name, seed=seed, image=True).fit(x, y)


def _with_gaps(y: np.ndarray, pool: np.ndarray) -> np.ndarray:
    return np.concatenate([y, np.full(len(pool), -1)])


def _self_training(x: np.ndarray, y: np.ndarray, pool: np.ndarray, seed: int) -> Any:
    model = SelfTrainingClassifier(LogisticRegression(max_iter=500), max_iter=5)
    return model.fit(np.concatenate([x, pool]), _with_gaps(y, pool))


def _label_spreading(x: np.ndarray, y: np.ndarray, pool: np.ndarray, seed: int) -> Any:
    model = make_pipeline(
        PCA(50, random_state=seed), LabelSpreading(kernel="knn", n_neighbors=10, max_iter=100)
    )
    return model.fit(np.concatenate([x, pool]), _with_gaps(y, pool))


LABEL_METHODS: dict[str, Any] = {
    "piefs": _ours,
    "piefs with unlabelled rows": _ours_with_pool,
    "piefs with unlabelled rows, warm start": _ours_from_graph,
    "piefs unsupervised, probed": _ours_probed,
    "logistic-regression": _baseline("logistic-regression"),
    "mlp": _baseline("mlp"),
    "self-training": _self_training,
    "label-spreading": _label_spreading,
}
