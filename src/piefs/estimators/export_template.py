"""A model fitted by piefs, for numpy alone: transform(X), and predict(X) where it has a target.

X has one row an example, its columns in the order of MODEL["feature_names"].
"""

import base64
import io
import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

MODEL: dict[str, Any] = {}
WEIGHTS = ""
BLOCK_ROWS = 512


def transform(X: Any) -> np.ndarray:
    """The coordinates Φ(X), shape (n, K)."""
    X = _checked(X)
    blocks = range(0, max(len(X), 1), BLOCK_ROWS)
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate(
            [coordinates(X[i : i + BLOCK_ROWS], MODEL, _arrays()) for i in blocks]
        )


def predict(X: Any) -> np.ndarray:
    """The most probable class of each row, or its predicted numbers."""
    values = outputs(transform(X), MODEL, _arrays())
    if MODEL["task"] == "classification":
        return np.array(MODEL["classes"])[values.argmax(axis=1)]
    return values


def predict_proba(X: Any) -> np.ndarray:
    """Class probabilities, shape (n, n_classes), in the order of MODEL["classes"]."""
    if MODEL["task"] != "classification":
        raise ValueError("this model has no classes")
    logits = outputs(transform(X), MODEL, _arrays()).astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def coordinates(x: Any, model: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Φ(x) = M (φ_1, …, φ_K)(z), where z are the scaled rows."""
    z = (x.astype(np.float64) - arrays["scaling.center"]) / arrays["scaling.scale"]
    if model["clip"] is not None:
        share = z / model["clip"]
        z = z / np.sqrt(1 + share * share)
    z = z.astype(arrays["mixing"].dtype)
    return MAPS[model["maps"]](z, model, arrays) @ arrays["mixing"].T


def outputs(phi: Any, model: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Logits of the classes, or numbers in the target's units."""
    if model["task"] == "coordinates":
        raise ValueError("this model was fitted without a target: it transforms, and no more")
    values = phi @ arrays["readout.weights"].T + arrays["readout.bias"]
    if model["task"] == "classification":
        return values
    # In double precision: single cannot hold a large offset.
    values = values.astype(np.float64) * arrays["units.scale"] + arrays["units.center"]
    return values.squeeze(1) if model["single_output"] else values


def _networks(z: Any, model: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """K networks at once, (n, d) × (K, d, h) → (K, n, h)."""
    for layer in range(model["n_layers"]):
        z = ACTIVATIONS[model["activation"]](z) if layer else z
        weights, biases = (arrays[f"maps.net.{part}.{layer}"] for part in ("weights", "biases"))
        z = z @ weights + biases[:, None]
    return z.squeeze(2).T


def _kernel(z: Any, model: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Σ_j [exp(−D_j) − (a/2) D_j] V_j + (a/2)|z|_λ Σ_j V_j + zB + b, D_j = Σ_i λ_i |z_i − Z_ji|."""
    landmarks, rates = arrays["maps.landmarks"], np.exp(arrays["maps.log_lam"])
    weights = arrays["maps.weights"]
    straight = weights * (arrays["maps.additive"] * 0.5)  # a scaled product would be single
    far = sum(abs(z[:, [i]] - landmarks[:, i]) * rate for i, rate in enumerate(rates))
    reach = rates[:, None] * straight.sum(axis=0)
    curved = np.exp(-far) @ weights - far @ straight + abs(z) @ reach
    return curved + z @ arrays["maps.slopes"] + arrays["maps.offset"]


MAPS = {"ScalarMap": _networks, "KernelMaps": _kernel}


@cache
def gelu_tail(dtype: np.dtype) -> np.ndarray:
    """Coefficients, lowest first, for the normal distribution's tail in elementary functions.

    With x = |z|/√2, t = 2/(2 + min(x, 6)) in [1/4, 1] and s = (8t − 5)/3 in [−1, 1], the tail is
    Φ(−|z|) = ½ e^(−x²) Σ_j c_j s^j. Neither numpy nor all ONNX runtimes have an error function.
    """

    def scaled_tail(s: np.ndarray) -> Any:
        x = 16 / (3 * s + 5) - 2
        return np.array([math.erfc(value) * math.exp(value**2) for value in x])

    degree = {4: 8, 8: 16}[dtype.itemsize]  # exact to rounding
    return chebyshev.cheb2poly(chebyshev.chebinterpolate(scaled_tail, degree)).astype(dtype)


def _gelu(z: Any) -> Any:
    """zΦ(z) = max(z, 0) − |z|Φ(−|z|)."""
    x = abs(z) * 0.5**0.5
    s = (16 / 3) / (np.minimum(x, 6) + 2) - 5 / 3
    *lower, polynomial = gelu_tail(z.dtype)
    for coefficient in lower[::-1]:
        polynomial = polynomial * s + coefficient
    return np.maximum(z, 0) - abs(z) * np.exp(-x * x) * polynomial * 0.5


ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "softplus": lambda z: np.maximum(z, 0) + np.log(1 + np.exp(-abs(z))),
    "gelu": _gelu,
    "silu": lambda z: z / (1 + np.exp(-z)),
    "sin": np.sin,
}


def _checked(X: Any) -> np.ndarray:
    names, given = MODEL["feature_names"], getattr(X, "columns", None)
    if names is not None and given is not None and [str(name) for name in given] != names:
        raise ValueError("the columns of X must be those of MODEL['feature_names'], in this order")
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != MODEL["n_features"]:
        raise ValueError(f"X must have the shape (n, {MODEL['n_features']}), not {X.shape}")
    X = X.astype(np.float64)
    if not np.isfinite(X).all():
        raise ValueError("X has missing or infinite values; fill them in")
    return X


@cache
def _arrays() -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(base64.b64decode(WEIGHTS)), allow_pickle=False) as arrays:
        return dict(arrays)
