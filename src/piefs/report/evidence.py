"""What a run keeps for its page: RUN/report.json, one document of plain JSON.

It is made once, from the data. The page is written from it, the model, the metrics and the
history, so that it can be written again without the data and without a fit.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from piefs.data import Dataset, Split
from piefs.data.encoder import TableEncoder
from piefs.data.files import read_document
from piefs.errors import InputError
from piefs.report.relevance import column_relevance, inverse_metric, kernel_rates, slopes_by_map
from piefs.report.rows import Judged, judge, pack, shown_rows
from piefs.report.scores import confidence_bins, probe_scores_by_maps, scores_by_split
from piefs.training.evaluation import needs_jax, weighted_gram

FORMAT = 1
MAX_POINTS = 1_500  # of a static scatter
RELEVANCE_ROWS, DEPENDENCE_ROWS = 2_000, 300
N_LEADING, N_INPUTS, N_VALUES = 4, 6, 25  # maps, inputs and values of a partial dependence
MAX_METRIC_FEATURES = 256
MAX_CELLS = 50_000_000  # that are searched for duplicates
BASELINE_CELLS = 4_000_000  # rows × columns that a baseline is fitted on: some seconds
MAX_ITERATIONS = 100
MANY_CLASSES = 30  # from here on a forest takes too long for a glance

Document = dict[str, Any]


def collect(
    estimator: Any,
    readout: Any,
    data: Dataset,
    *,
    task: str,
    encoder: TableEncoder,
    notices: Sequence[str],
    with_baselines: bool,
) -> Document:
    """Everything of a fitted run that its page shows; `readout` is what predicts, or None."""
    phi = {name: estimator.transform(part.x) for name, part in data.splits.items()}
    left_out, honest = getattr(estimator, "left_out_", None), phi
    if left_out is not None:  # rows' own labels would make a probe trust their coordinates
        honest = phi | {"train": left_out[: len(data.train)]}
    judged: dict[str, Judged] = {}
    if readout is not None:
        n_classes = len(data.class_names)
        judged = {name: judge(readout, part, n_classes) for name, part in data.splits.items()}
    shares, of_metric = relevance_of(estimator, data)
    metric = None if of_metric is None else pack(of_metric)
    about = ("name", "description", "feature_names", "class_names", "image_shape")
    n_rows = {name: len(part) for name, part in data.splits.items()}
    gram = weighted_gram(phi["validation"], np.ones(n_rows["validation"]))
    held_out = {name: data.splits[name] for name in ("validation", "test") if judged}
    return {
        "format": FORMAT,
        "data": {name: getattr(data, name) for name in about}
        | {"target": data.target_name, "n_rows": n_rows, "notices": list(notices)},
        "rows": shown_rows(data, phi, judged, shares.sum(axis=1)),
        "baselines": baselines(data, task, phi["train"].shape[1]) if with_baselines else [],
        "by_maps": probe_scores_by_maps(honest, data) if judged else None,
        "relevance": {"by_map": pack(shares), "metric": metric},
        "dependence": [] if data.image_shape else dependence(estimator, data, shares),
        "gram": {"validation": pack(gram)},
        "judged": {name: _judgement(judged[name], part) for name, part in held_out.items()},
        "facts": data_facts(data, encoder),
        "plane": _plane(data),
    }


def read_evidence(path: Path) -> Document:
    """The document of a run that has one."""
    document = read_document(path, "fit again without --no-report")
    if document.get("format") != FORMAT:
        raise InputError(f"{path} is from another version of piefs; fit again")
    return document


# --- the data ------------------------------------------------------------------------------------


def data_facts(data: Dataset, encoder: TableEncoder) -> Document:
    """Properties of the data that may spoil a model.

    Among them: how many training rows are repeated, and how many held-out rows are training rows.
    """
    dropped = [c.name for c in encoder.columns if c.kind == "dropped" and c.reason == "constant"]
    facts: Document = {"constant_columns": dropped, "repeated": None, "leaked": None}
    if sum(part.x.size for part in data.splits.values()) <= MAX_CELLS:
        train, *held_out = ([row.tobytes() for row in part.x] for part in data.splits.values())
        known = set(train)
        facts["repeated"] = len(train) - len(known)
        facts["leaked"] = sum(row in known for rows in held_out for row in rows)
    if (n := len(data.class_names)) > 1:
        facts["class_counts"] = {
            name: np.bincount(part.y, minlength=n).tolist() for name, part in data.splits.items()
        }
    return facts


def _plane(data: Dataset) -> Document | None:
    """Validation rows, if the inputs are two."""
    if data.train.x.shape[1] != 2:
        return None
    x, y = data.validation.x[:MAX_POINTS], data.validation.y[:MAX_POINTS]
    return {"x": pack(x), "y": pack(y, "float32" if data.is_regression else "int32")}


# --- the model -----------------------------------------------------------------------------------


def relevance_of(estimator: Any, data: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
    """Shares of each map's mean squared slope, (d, K), and of the metric, (d,), if it has one.

    Of the closed form the latter are shares of λ.
    """
    model, x = estimator.model_, data.train.x[:RELEVANCE_ROWS]
    slopes = slopes_by_map(model, x)
    shares = slopes / np.maximum(slopes.sum(axis=0), np.finfo(float).tiny)
    if estimator.settings_.metric.name == "off":
        return shares, None
    if not needs_jax(model):
        rates = kernel_rates(model)
        return shares, rates / rates.sum()
    if x.shape[1] > MAX_METRIC_FEATURES:
        return shares, None
    return shares, column_relevance(inverse_metric(model, x))


def dependence(estimator: Any, data: Dataset, shares: np.ndarray) -> list[Document]:
    """Partial dependence of the leading maps on each of the inputs that matter most.

    The mean of φ_k over rows in which one input takes a given value and the others stay as they
    were observed.
    """
    rows = data.train.x[:DEPENDENCE_ROWS]
    order = np.argsort(-shares[:, :N_LEADING].sum(axis=1), kind="stable")[:N_INPUTS]
    found = []
    for feature in sorted(order.tolist()):
        column = data.train.x[:, feature].astype(float)
        values = np.unique(column)
        if len(values) > N_VALUES:
            values = np.unique(np.quantile(column, np.linspace(0.01, 0.99, N_VALUES)))
        moved = np.repeat(rows[None], len(values), axis=0)
        moved[:, :, feature] = values[:, None]
        phi = estimator.transform(moved.reshape(-1, rows.shape[1]))[:, :N_LEADING]
        curves = phi.reshape(len(values), len(rows), -1).mean(axis=1)
        name = data.feature_names[feature]
        found.append({"name": name, "values": values.tolist(), "curves": curves.tolist()})
    return found


def _judgement(judged: Judged, part: Split) -> Document:
    """Predictions against the truth: pairs of numbers, or counts by class and by confidence."""
    if judged.predicted.dtype.kind == "f":
        rows = np.random.default_rng(0).permutation(len(part))[:MAX_POINTS]
        return {"truth": part.y[rows].tolist(), "predicted": judged.predicted[rows].tolist()}
    classes = np.arange(judged.probabilities.shape[1])
    bins = confidence_bins(part.y, judged.probabilities)
    return {
        "confusion": confusion_matrix(part.y, judged.predicted, labels=classes).tolist(),
        "bins": {name: values.tolist() for name, values in bins.items()},
    }


# --- simple baselines on the same splits, bounded in time ----------------------------------------


def baselines(data: Dataset, task: str, n_components: int) -> list[Document]:
    """Every baseline's scores by metric and split, with a note on how it was fitted."""
    if len(data.class_names) == 1:
        return []
    n, most = len(data.train), max(50, BASELINE_CELLS // data.train.x.shape[1])
    train, note = data.train, ""
    if n > most:
        train = train.take(np.sort(np.random.default_rng(0).choice(n, most, replace=False)))
        note = f"fitted on {most:,} rows"
    models = _models(data, task, n_components)
    return [_fitted(name, model, train, data, note) for name, model in models.items()]


def _models(data: Dataset, task: str, k: int) -> dict[str, Any]:
    if data.is_regression:
        return {
            "mean": DummyRegressor(),
            "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
            "gradient boosting": HistGradientBoostingRegressor(random_state=0),
        }
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITERATIONS))
    found = {"majority class": DummyClassifier(strategy="prior"), "logistic regression": linear}
    if task == "unsupervised":
        k = min(k, *data.train.x.shape)
        pca = make_pipeline(linear[0], PCA(k, random_state=0), linear[1])
        found[f"logistic regression on {k} principal components"] = pca
    elif len(data.class_names) <= MANY_CLASSES:
        found["random forest"] = RandomForestClassifier(100, n_jobs=1, random_state=0)
    return found


def _fitted(name: str, model: Any, train: Split, data: Dataset, note: str) -> Document:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # PIEFS' scores raise it too
            scores = scores_by_split(model.fit(train.x, train.y), data)
    except ValueError as error:  # scikit-learn refuses the rows: the page says so and goes on
        scores, note = {}, f"not fitted: {' '.join(str(error).split())[:120]}"
    return {"name": name, "scores": scores, "note": note}
