"""A fitted model as plain arrays and names: all that a prediction needs, nothing of training."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from piefs.errors import InputError

GELU_DEGREES = {4: 8, 8: 16}
"""Degrees at which the polynomial of `gelu_tail` is exact to rounding, by bytes of a float."""


@dataclass(frozen=True, eq=False)
class PlainModel:
    """x ↦ M (φ_1, …, φ_K)((x − center)/scale), and a readout where `task` is to predict.

    `center` and `scale` are in double precision, as they were in training, or None without scaling;
    layer l of all maps has `weights[l]` of shape (K, fan_in, fan_out) and `biases[l]` of shape
    (K, fan_out). `labels` are the classes in the order of the readout's outputs; numbers come in
    the units of `target_center` and `target_scale`. `table` says how a file's columns become
    features, as `TableEncoder.to_document` does.
    """

    task: str
    center: np.ndarray | None
    scale: np.ndarray | None
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str
    mixing: np.ndarray
    readout_weights: np.ndarray
    readout_bias: np.ndarray
    feature_names: tuple[str, ...] | None = None
    labels: np.ndarray | None = None
    target_center: np.ndarray | None = None
    target_scale: np.ndarray | None = None
    single_output: bool = True
    table: dict[str, Any] | None = None
    identifier: str | None = None

    @property
    def dtype(self) -> np.dtype:
        """The precision of the maps."""
        return self.mixing.dtype

    @property
    def n_features(self) -> int:
        """How many numbers a row has."""
        return self.weights[0].shape[1]

    @property
    def n_components(self) -> int:
        """K, the number of maps."""
        return len(self.mixing)


def plain_labels(classes: Any) -> np.ndarray:
    """Class labels in one of the types that every format has: text, whole numbers, or others."""
    labels = np.asarray(classes)
    if labels.dtype == object:
        labels = np.array(labels.tolist())
        if not all(type(one) is type(classes[0]) for one in classes):
            raise InputError("classes of several types cannot be exported: make them all text")
    kinds = {"U": str, "b": bool, "i": np.int64, "u": np.int64, "f": np.float64}
    if labels.dtype.kind not in kinds:
        raise InputError(f"classes of type {labels.dtype} cannot be exported: make them text")
    if labels.dtype.kind == "u" and labels.max() > np.iinfo(np.int64).max:
        raise InputError("classes beyond 2⁶³ cannot be exported: make them text")
    return labels.astype(kinds[labels.dtype.kind])


def gelu_tail(dtype: np.dtype) -> np.ndarray:
    """Coefficients, lowest first, for the normal distribution's tail in elementary functions.

    With x = |z|/√2, t = 2/(2 + min(x, 6)) in [1/4, 1] and s = (8t − 5)/3 in [−1, 1], the tail is
    Φ(−|z|) = ½ e^(−x²) Σ_j c_j s^j. Neither numpy nor all runtimes have an error function.
    """

    def scaled_tail(s: np.ndarray) -> Any:
        x = 16 / (3 * s + 5) - 2
        return np.array([erfc(value) * exp(value**2) for value in x])

    series = chebyshev.chebinterpolate(scaled_tail, GELU_DEGREES[dtype.itemsize])
    return chebyshev.cheb2poly(series).astype(dtype)
