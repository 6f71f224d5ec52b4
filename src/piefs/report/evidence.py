"""What a run remembers for its page: RUN/report.json, one document of plain JSON.

It is made once, while the data are at hand. A page is written from it, from the model, the metrics
and the history, so that it can be written anew without the data and without fitting.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from piefs.data import Dataset, Split
from piefs.data.documents import read_json
from piefs.data.encoder import TableEncoder
from piefs.errors import InputError
from piefs.report.comparisons import compare
from piefs.report.measures import by_maps_kept, data_facts, dependence, relevance_of
from piefs.report.packing import pack
from piefs.report.rows import Judged, judge, shown_rows
from piefs.report.scores import class_probabilities, confidence_bins

FORMAT = 1
MAX_POINTS = 1_500  # of a static scatter

Document = dict[str, Any]


def collect(
    estimator: Any,
    readout: Any,
    data: Dataset,
    *,
    task: str,
    encoder: TableEncoder,
    notices: Sequence[str] = (),
) -> Document:
    """Everything of a fitted run that its page shows; `readout` is what predicts, or None."""
    phi = {name: estimator.transform(part.x) for name, part in data.splits.items()}
    n_classes = len(data.class_names)
    judged = {}
    if readout is not None:
        judged = {name: judge(readout, part, n_classes) for name, part in data.splits.items()}
    shares, of_metric = relevance_of(estimator, data)
    held_out = {name: data.splits[name] for name in ("validation", "test")}
    return {
        "format": FORMAT,
        "task": task,
        "data": _described(data, notices),
        "rows": shown_rows(data, phi, judged, shares.sum(axis=1)),
        "baselines": compare(data, task, estimator.config_.n_components),
        "by_maps": by_maps_kept(phi, data) if judged else None,
        "relevance": {
            "by_map": pack(shares),
            "metric": None if of_metric is None else pack(of_metric),
        },
        "dependence": [] if data.image_shape else dependence(estimator, data, shares),
        "gram": {name: pack(phi[name].T @ phi[name] / len(phi[name])) for name in held_out},
        "judged": {
            name: _judgement(readout, part, judged[name], n_classes)
            for name, part in held_out.items()
            if judged
        },
        "facts": data_facts(data, encoder),
        "plane": _plane(data),
    }


def _described(data: Dataset, notices: Sequence[str]) -> Document:
    return {
        "name": data.name,
        "description": data.description,
        "n_rows": {name: len(part) for name, part in data.splits.items()},
        "feature_names": list(data.feature_names),
        "class_names": list(data.class_names),
        "target": data.target_name,
        "image_shape": None if data.image_shape is None else list(data.image_shape),
        "notices": list(notices),
    }


def _judgement(readout: Any, part: Split, judged: Judged, n_classes: int) -> Document:
    """Where predictions are right and where not."""
    if not n_classes:
        rows = np.random.default_rng(0).permutation(len(part))[:MAX_POINTS]
        return {"truth": part.y[rows].tolist(), "predicted": judged.predicted[rows].tolist()}
    labels = np.arange(n_classes)
    bins = confidence_bins(part.y, class_probabilities(readout, part.x, n_classes))
    nothing: Any = np.nan  # its types know only of words
    by_class = precision_recall_fscore_support(
        part.y, judged.predicted, labels=labels, zero_division=nothing
    )
    return {
        "confusion": confusion_matrix(part.y, judged.predicted, labels=labels).tolist(),
        "bins": {name: values.tolist() for name, values in bins._asdict().items()},
        "by_class": [np.asarray(values, float).tolist() for values in by_class[:3]],
    }


def _plane(data: Dataset) -> Document | None:
    """Points of the plane, where the inputs are two."""
    if data.train.x.shape[1] != 2:
        return None
    x, y = data.validation.x[:MAX_POINTS], data.validation.y[:MAX_POINTS]
    return {"x": pack(x), "y": pack(y, "float32" if data.is_regression else "int32")}


def read_evidence(path: Path) -> Document:
    """The document of a run that has one."""
    if not path.is_file():
        raise InputError(f"{path.parent} kept nothing for a report; fit again without --no-report")
    document = read_json(path, "fit again")
    if document.get("format") != FORMAT:
        raise InputError(f"{path} is of another version of piefs; fit again")
    return document
