"""A benchmark on which geometry matters: the informative plane is known, the rest is nuisance.

The label is the sector, of five, in which the first two of d = 20 standard normal numbers lie. The
other eighteen are noise. `irrelevant` leaves the columns as they are, `rotated` turns all of them
by one rotation, `anisotropic` first stretches the nuisance directions by factors from 1 to 4. Few
rows are labelled: 100, 300 or 1,000. 300 further rows choose settings, 5,000 measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, mutual_info_classif
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from lab.experiments.data import Task
from lab.experiments.methods import Method
from lab.experiments.rfm import RecursiveFeatureMachine
from piefs import Metric, PIEFSClassifier
from piefs.report.relevance import gradient_outer_product, inverse_metric

D, PLANE, N_CLASSES = 20, 2, 5
KINDS = ("irrelevant", "rotated", "anisotropic")
LABELS = (100, 300, 1000)
N_VALIDATION, N_TEST = 300, 5000
SMOOTHNESS = (0.03, 0.3, 3.0)
MORE = ", five values"
MORE_SMOOTHNESS = (0.0003, 0.003, *SMOOTHNESS)
SETTINGS: dict[str, Any] = {
    "n_components": 4,
    "steps_per_component": 2000,
    "hidden": (64, 64),
    "weighting": {"orth": 1.0},
    "early_stopping": False,
}


def turn_of(kind: str, split: int) -> np.ndarray:
    """The rotation of a data set; its first two columns span the informative plane."""
    if kind == "irrelevant":
        return np.eye(D)
    return np.linalg.qr(np.random.default_rng([77, split]).standard_normal((D, D)))[0]


def rows(kind: str, n: int, seed: tuple[int, ...], split: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows and their classes."""
    z = np.random.default_rng(seed).standard_normal((n, D))
    angle = np.arctan2(z[:, 1], z[:, 0])
    y = np.minimum(N_CLASSES * (angle + np.pi) / (2 * np.pi), N_CLASSES - 1).astype(int)
    if kind == "anisotropic":
        z[:, PLANE:] *= np.linspace(1, 4, D - PLANE)
    return z @ turn_of(kind, split).T, y


def task_maker(kind: str, n: int) -> Callable[[int], Task]:
    """A data set of n labelled rows, by split."""

    def make(split: int) -> Task:
        parts = [
            rows(kind, size, (split, part), split)
            for part, size in enumerate((n, N_VALIDATION, N_TEST))
        ]
        return Task(*(array for part in parts for array in part))

    return make


GEOMETRY_SETS = {f"{kind}-{n}": task_maker(kind, n) for kind in KINDS for n in LABELS}


def subspace_angle(matrix: np.ndarray, plane: np.ndarray) -> float:
    """The largest principal angle, in degrees, between two leading directions and a plane."""
    leading = np.linalg.eigh(matrix)[1][:, -PLANE:]
    cosines = np.linalg.svd(leading.T @ plane, compute_uv=False)
    return float(np.degrees(np.arccos(np.clip(cosines.min(), 0, 1))))


def findings(source: str, matrix: np.ndarray, plane: np.ndarray) -> dict[str, float]:
    """How well a matrix points at the plane, and how well its diagonal ranks the columns."""
    truth = np.diag(plane @ plane.T)
    return {
        f"angle_{source}": subspace_angle(matrix, plane),
        f"ranking_{source}": float(spearmanr(np.diag(matrix), truth).statistic),
    }


def _plane(dataset: str, seed: int) -> np.ndarray:
    return turn_of(dataset.split("-")[0], seed)[:, :PLANE]


def tuned(dataset: str, values: Sequence[float] = SMOOTHNESS, **keywords: Any) -> Method:
    """PIEFS with the smoothness that is best on the validation rows, and what it found."""

    def fit(task: Task, seed: int) -> Any:
        def at(smoothness: float) -> PIEFSClassifier:
            model = PIEFSClassifier(
                smoothness=smoothness, standardize=False, random_state=seed, **SETTINGS | keywords
            )
            return model.fit(task.x, task.y)

        fitted = [at(s) for s in values]
        best: Any = max(fitted, key=lambda m: m.score(task.x_validation, task.y_validation))
        plane = _plane(dataset, seed)
        best.extra_ = findings("maps", gradient_outer_product(best.model_, task.x), plane)
        if keywords:
            inverse = inverse_metric(best.model_, task.x)
            best.extra_ |= findings("metric", inverse, plane)
        return best

    return fit


def _rfm(dataset: str) -> Method:
    def fit(task: Task, seed: int) -> Any:
        model: Any = RecursiveFeatureMachine()
        model.fit(task.x, task.y, task.x_validation, task.y_validation)
        model.extra_ = findings("maps", model.agop_, _plane(dataset, seed))
        return model

    return fit


def _forest(dataset: str) -> Method:
    def fit(task: Task, seed: int) -> Any:
        model: Any = RandomForestClassifier(300, random_state=seed).fit(task.x, task.y)
        relevance = np.diag(model.feature_importances_)
        model.extra_ = findings("maps", relevance, _plane(dataset, seed))
        return model

    return fit


def _mutual_information(dataset: str) -> Method:
    def fit(task: Task, seed: int) -> Any:
        relevance = mutual_info_classif(task.x, task.y, random_state=seed)
        selection = SelectKBest(lambda x, y: relevance, k=PLANE)
        model: Any = make_pipeline(selection, KNeighborsClassifier(15)).fit(task.x, task.y)
        model.extra_ = findings("maps", np.diag(relevance), _plane(dataset, seed))
        return model

    return fit


METRICS: dict[str, dict[str, Any]] = {
    "off": {},
    "agop, trace": {"metric": Metric("agop", constraint="trace", bound=6.0)},
    "agop, volume": {"metric": Metric("agop", constraint="volume")},
    "diag, global, trace": {"metric": Metric("diag", scope="global", constraint="trace")},
    "butterfly, global, trace": {"metric": Metric("butterfly", scope="global", constraint="trace")},
    "diag, local, volume": {"metric": "diag"},
    "trotter, local, volume": {"metric": "trotter"},
    "cayley, local, trace": {"metric": Metric("cayley", constraint="trace")},
}


def methods(dataset: str) -> dict[str, Method]:
    """Everything that is compared on a data set."""
    ours = {name: tuned(dataset, **keywords) for name, keywords in METRICS.items()}
    with_more = {
        f"{name}{MORE}": tuned(dataset, MORE_SMOOTHNESS, **METRICS[name])
        for name in ("off", "agop, volume")
    }
    return (
        ours
        | with_more
        | {
            "recursive-feature-machine": _rfm(dataset),
            "random-forest": _forest(dataset),
            "mutual-information": _mutual_information(dataset),
        }
    )
