"""Fitted estimators as plain arrays and names, for other programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from piefs.data.encoder import TableEncoder
from piefs.errors import InputError
from piefs.estimators.base import BasePIEFS
from piefs.estimators.classifier import PIEFSClassifier
from piefs.estimators.exports import PlainModel
from piefs.estimators.exports.plain import plain_labels
from piefs.estimators.regressor import PIEFSRegressor


def plain_model(
    estimator: BasePIEFS,
    *,
    labels: list[str] | None = None,
    table: TableEncoder | None = None,
    identifier: str | None = None,
) -> PlainModel:
    """The arrays and names of a fitted estimator.

    Where its rows come from a table, that says the features' names; `labels` stand in for its own
    classes, and `identifier` is the column that names rows.
    """
    if not hasattr(estimator, "model_"):
        raise InputError("this estimator is not fitted yet: call fit before export")
    model, scaled = estimator.model_, estimator.standardize
    names = getattr(estimator, "feature_names_in_", None) if table is None else table.feature_names
    return PlainModel(
        **_target(estimator, labels),
        center=estimator.center_ if scaled else None,
        scale=estimator.scale_ if scaled else None,
        weights=tuple(map(np.asarray, model.maps.net.weights)),
        biases=tuple(map(np.asarray, model.maps.net.biases)),
        activation=model.maps.net.activation,
        mixing=np.asarray(model.mixing),
        readout_weights=np.asarray(model.readout.weights),
        readout_bias=np.asarray(model.readout.bias),
        feature_names=None if names is None else tuple(map(str, names)),
        table=None if table is None else table.to_document(),
        identifier=identifier,
    )


def _target(estimator: BasePIEFS, labels: list[str] | None) -> dict[str, Any]:
    """What the readout predicts, if anything."""
    if isinstance(estimator, PIEFSClassifier):
        classes = estimator.classes_ if labels is None else labels
        return {"task": "classification", "labels": plain_labels(classes)}
    if isinstance(estimator, PIEFSRegressor):
        return {
            "task": "regression",
            "target_center": estimator.target_center_,
            "target_scale": estimator.target_scale_,
            "single_output": bool(estimator.single_output_),
        }
    return {"task": "coordinates"}
