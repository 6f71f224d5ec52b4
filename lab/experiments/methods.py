"""What is compared: ours in its variants, and what a user would pick instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lab.experiments.data import Task
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from reproduction.baselines import make_baseline

Method = Callable[[Task, int], Any]

C_GRID = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1.0)


def ours(**keywords: Any) -> Method:
    """PIEFS with these keywords, on the training rows."""

    def fit(task: Task, seed: int) -> Any:
        kind = PIEFSRegressor if task.regression else PIEFSClassifier
        model = kind(standardize=task.standardize, random_state=seed, **keywords)
        return model.fit(task.x, task.y)

    return fit


def polished(task: Task, seed: int) -> Any:
    """The paper's preset, then all maps at once from where it ended."""
    model = PIEFSClassifier(preset="paper", standardize=task.standardize, random_state=seed).fit(
        task.x, task.y
    )
    settings = PIEFSClassifier().check_settings(len(task.x))
    names = ("steps_per_component", "batch_size", "learning_rate", "weight_decay")
    chosen = {name: getattr(settings, name) for name in names}
    chosen |= {"preset": "paper, whitened", "solver": settings.solver}
    chosen |= {"optimizer": {"warmup": settings.optimizer.warmup}, "pretraining": model.model_}
    return model.set_params(**chosen).fit(task.x, task.y)


def probed(**keywords: Any) -> Method:
    """Coordinates without labels, and a logistic regression on them."""

    def fit(task: Task, seed: int) -> Any:
        features = PIEFSTransformer(
            supervised=False, standardize=task.standardize, random_state=seed, **keywords
        )
        return make_pipeline(features, LogisticRegression(max_iter=1000)).fit(task.x, task.y)

    return fit


def baseline(name: str) -> Method:
    """A baseline of the package, with its own settings."""

    def fit(task: Task, seed: int) -> Any:
        return make_baseline(name, seed=seed, image=task.image).fit(task.x, task.y)

    return fit


def tuned_logistic_regression(task: Task, seed: int) -> Any:
    """Logistic regression at the C that is best on the validation rows."""

    def at(c: float) -> Any:
        regression = LogisticRegression(C=c, max_iter=2000)
        return make_pipeline(StandardScaler(), regression).fit(task.x, task.y)

    return max((at(c) for c in C_GRID), key=lambda m: m.score(task.x_validation, task.y_validation))


def _regression(make: Callable[[int], Any]) -> Method:
    return lambda task, seed: make(seed).fit(task.x, task.y)


CLASSIFIERS: dict[str, Method] = {
    "piefs": ours(),
    "random-forest": baseline("random-forest"),
    "gradient-boosting": baseline("gradient-boosting"),
    "mlp": baseline("mlp"),
    "logistic-regression": baseline("logistic-regression"),
}

REGRESSORS: dict[str, Method] = {
    "piefs": ours(),
    "random-forest": _regression(lambda seed: RandomForestRegressor(200, random_state=seed)),
    "gradient-boosting": _regression(lambda seed: HistGradientBoostingRegressor(random_state=seed)),
    "mlp": _regression(
        lambda seed: make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(64, 64, 64), max_iter=500, random_state=seed),
        )
    ),
    "ridge": _regression(
        lambda seed: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    ),
}

SCHEDULES: dict[str, Method] = {
    "paper": ours(preset="paper"),
    "sequential": ours(solver="sequential"),
    "joint": ours(solver="joint"),
    "nested": ours(solver="nested"),
    "paper, polished": polished,
}

ABLATIONS: dict[str, Method] = {
    "default": ours(),
    "no prefix losses": ours(solver="joint"),
    "no smoothness": ours(smoothness=0.0),
    "ten times the smoothness": ours(smoothness=3e-3),
    "no weight decay": ours(weight_decay=0.0),
    "no orthogonality": ours(weighting={"orth": 0.0}),
    "no whitening": ours(preset="default, not whitened"),
    "no warm-up": ours(optimizer={"warmup": 0.0}),
    "Gram error of the batch": ours(weighting={"gram": "batch"}),
    "relu": ours(activation="relu"),
    "silu": ours(activation="silu"),
    "metric diag": ours(metric="diag"),
}
