"""The methods: how each is fitted, and what it takes as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import parallel_config
from scipy.special import ndtri
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lab.tables.data import Task

CORES = 2
TUNING_ROWS = 5_000
SVM_GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-2, 1, 4)}
"""`gamma` in units of one over the number of columns."""
INTERVALS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Method:
    """How to fit, the packages it depends on, and whether it takes categories and gaps as they are.

    A record counts for as long as it has the method's `key`: change it to run the method again.
    `more` measures on the test rows what other methods do not have.
    """

    label: str
    fit: Callable[[Task], Any]
    packages: tuple[str, ...] = ("scikit-learn",)
    categories: bool = False
    gaps: bool = False
    key: str = "1"
    more: Callable[[Any, Task], dict[str, Any]] = lambda model, task: {}


def piefs(task: Task) -> Any:
    """The default estimator, without a keyword."""
    from piefs import PIEFSClassifier, PIEFSRegressor

    kind = PIEFSRegressor if task.regression else PIEFSClassifier
    return kind().fit(task.x.to_numpy(), task.y)


def coordinates(model: Any, task: Task) -> dict[str, Any]:
    """The Gram error beside its sampling floor, and of numbers the shares that intervals hold."""
    x, k = task.x_test.to_numpy(), model.n_components_
    found = {
        "n_components": k,
        "gram_error_unbiased": model.gram_errors(x)["gram_error_unbiased"],
        "gram_floor": k * (k + 1) / len(task.y),
    }
    if task.regression:
        mean, deviation = model.predict(x, return_std=True)
        distance = np.abs(task.y_test - mean) / deviation
        inside = [float(np.mean(distance <= ndtri(0.5 + share / 2))) for share in INTERVALS]
        found["coverage"] = inside
    return found


def forest(task: Task) -> Any:
    """200 trees."""
    kind = RandomForestRegressor if task.regression else RandomForestClassifier
    return kind(200, n_jobs=CORES, random_state=task.seed).fit(task.x, task.y)


def boosting(task: Task) -> Any:
    """scikit-learn's histogram gradient boosting."""
    kind = HistGradientBoostingRegressor if task.regression else HistGradientBoostingClassifier
    return kind(categorical_features="from_dtype", random_state=task.seed).fit(task.x, task.y)


def linear(task: Task) -> Any:
    """Ridge or logistic regression with the penalty cross-validated."""
    if task.regression:
        model: Any = RidgeCV(np.logspace(-3, 4, 15))
    else:
        model = LogisticRegressionCV(
            Cs=10,
            l1_ratios=(0.0,),
            cv=_folds(task),
            scoring="neg_log_loss",
            max_iter=1000,
            n_jobs=CORES,
            use_legacy_attributes=False,
        )
    with parallel_config("threading"):
        return make_pipeline(StandardScaler(), model).fit(task.x, task.y)


def perceptron(task: Task) -> Any:
    """Two hidden layers of 256 that stop early."""
    kind = MLPRegressor if task.regression else MLPClassifier
    model: Any = kind(
        hidden_layer_sizes=(256, 256),
        early_stopping=True,
        n_iter_no_change=20,
        max_iter=500,
        random_state=task.seed,
    )
    if task.regression:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    return make_pipeline(StandardScaler(), model).fit(task.x, task.y)


def support_vectors(task: Task) -> Any:
    """RBF kernel, C and gamma from three folds of at most 5,000 rows; Platt's probabilities."""
    model: Any = SVR(cache_size=500) if task.regression else SVC(cache_size=500)
    rows = np.random.default_rng(task.seed).permutation(len(task.y))[:TUNING_ROWS]
    scaler = StandardScaler().fit(task.x)
    x, y = scaler.transform(task.x), task.y
    if task.regression:
        scale = StandardScaler().fit(y[:, None])
        y = scale.transform(y[:, None])[:, 0]
    grid = SVM_GRID | {"gamma": SVM_GRID["gamma"] / x.shape[1]}
    with parallel_config("threading"):
        search = GridSearchCV(model, grid, cv=_folds(task), n_jobs=CORES, refit=False)
        model.set_params(**search.fit(x[rows], y[rows]).best_params_)
        if task.regression:
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        else:
            model = CalibratedClassifierCV(model, cv=_folds(task), ensemble=False, n_jobs=CORES)
        return make_pipeline(scaler, model).fit(task.x, task.y)


def catboost(task: Task) -> Any:
    """CatBoost's defaults; a gap among categories is a category."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    names = task.categories
    kind = CatBoostRegressor if task.regression else CatBoostClassifier
    model = kind(
        thread_count=CORES,
        random_seed=task.seed,
        cat_features=names,
        verbose=False,
        allow_writing_files=False,
    )
    return _Texts(model.fit(_texts(task.x, names), task.y), names)


def real_mlp(task: Task) -> Any:
    """RealMLP with its tuned defaults."""
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    kind = RealMLP_TD_Regressor if task.regression else RealMLP_TD_Classifier
    return kind(device="cpu", n_threads=CORES, random_state=task.seed).fit(task.x, task.y)


def xrfm(task: Task) -> Any:
    """xRFM with the defaults and the preparation of columns that pytabkit gives it."""
    from pytabkit import XRFM_D_Classifier, XRFM_D_Regressor

    kind = XRFM_D_Regressor if task.regression else XRFM_D_Classifier
    return kind(device="cpu", n_threads=CORES, random_state=task.seed).fit(task.x, task.y)


def explainable_boosting(task: Task) -> Any:
    """interpret's explainable boosting machine."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingRegressor if task.regression else ExplainableBoostingClassifier
    with parallel_config("threading"):
        return kind(n_jobs=CORES, random_state=task.seed).fit(task.x, task.y)


METHODS = {
    "piefs": Method(
        "piefs", piefs, ("piefs-learn", "numpy", "scikit-learn"), key="2", more=coordinates
    ),
    "forest": Method("random forest", forest, gaps=True),
    "boosting": Method("boosting", boosting, categories=True, gaps=True),
    "linear": Method("linear", linear),
    "mlp": Method("MLP", perceptron),
    "svm": Method("SVM", support_vectors),
    "catboost": Method("CatBoost", catboost, ("catboost",), categories=True, gaps=True),
    "realmlp": Method("RealMLP", real_mlp, ("pytabkit", "torch")),
    "ebm": Method("EBM", explainable_boosting, ("interpret-core",), categories=True, gaps=True),
    "xrfm": Method("xRFM", xrfm, ("xrfm", "pytabkit", "torch")),
}


@dataclass
class _Texts:
    """A CatBoost model that is given categories as text."""

    model: Any
    names: list[str]

    def predict(self, x: Any) -> np.ndarray:
        return self.model.predict(_texts(x, self.names))

    def predict_proba(self, x: Any) -> np.ndarray:
        return self.model.predict_proba(_texts(x, self.names))


def _texts(x: Any, names: list[str]) -> Any:
    return x.assign(**{name: x[name].astype(object).fillna("gap").astype(str) for name in names})


def _folds(task: Task) -> Any:
    """Three folds, shuffled by the split's seed."""
    kind = KFold if task.regression else StratifiedKFold
    return kind(3, shuffle=True, random_state=task.seed)
