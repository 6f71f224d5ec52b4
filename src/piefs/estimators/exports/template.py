"""A model fitted by piefs, for numpy alone: transform(X), and predict(X) where it has a target.

X has one row an example, its columns in the order of MODEL["feature_names"]. From a shell,
`python FILE.py rows.csv` writes a prediction for each row, or the coordinates of a model without
a target.
"""

import base64
import csv
import datetime
import io
import math
import re
import sys
from functools import cache
from typing import Any

import numpy as np

MODEL: dict[str, Any] = {}
BLOCK_ROWS = 4096


def transform(X: Any) -> np.ndarray:
    """The coordinates Φ(X), shape (n, K)."""
    X = _checked(X)
    blocks = range(0, max(len(X), 1), BLOCK_ROWS)
    return np.concatenate([_coordinates(X[start : start + BLOCK_ROWS]) for start in blocks])


def predict(X: Any) -> np.ndarray:
    """The most probable class of each row, or its predicted numbers."""
    if MODEL["task"] == "classification":
        return np.array(MODEL["classes"])[_readout(X).argmax(axis=1)]
    arrays = _arrays()
    numbers = _readout(X).astype(np.float64) * arrays["target_scale"] + arrays["target_center"]
    return numbers[:, 0] if MODEL["single_output"] else numbers


def predict_proba(X: Any) -> np.ndarray:
    """Class probabilities, shape (n, n_classes), in the order of MODEL["classes"]."""
    if MODEL["task"] != "classification":
        raise ValueError("this model has no classes")
    logits = _readout(X).astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _readout(X: Any) -> np.ndarray:
    if MODEL["task"] == "coordinates":
        raise ValueError("this model was fitted without a target: it transforms, and no more")
    arrays = _arrays()
    return transform(X) @ arrays["readout_weights"].T + arrays["readout_bias"]


def _coordinates(X: np.ndarray) -> np.ndarray:
    """All maps, one after the other, of rows that fit into the cache, and their mixture."""
    arrays = _arrays()
    if MODEL["is_scaled"]:
        X = (X - arrays["center"]) / arrays["scale"]
    x = X.astype(arrays["mixing"].dtype)
    columns = []
    with np.errstate(over="ignore", under="ignore"):
        for k in range(len(arrays["mixing"])):
            z = x @ arrays["weights0"][k] + arrays["biases0"][k]
            for layer in range(1, MODEL["n_layers"]):
                h = ACTIVATIONS[MODEL["activation"]](z)
                z = h @ arrays[f"weights{layer}"][k] + arrays[f"biases{layer}"][k]
            columns.append(z[:, 0])
    return np.stack(columns, axis=1) @ arrays["mixing"].T


def _gelu(z: np.ndarray) -> np.ndarray:
    """zΦ(z), with the normal distribution's tail as a polynomial times e^(−z²/2)."""
    x = np.abs(z) * z.dtype.type(0.5**0.5)
    s = z.dtype.type(16 / 3) / (np.minimum(x, 6) + 2) - z.dtype.type(5 / 3)
    polynomial = np.zeros_like(s)
    for coefficient in _arrays()["gelu_tail"][::-1]:
        polynomial = polynomial * s + coefficient
    return np.maximum(z, 0) - np.abs(z) * np.exp(-x * x) * polynomial / 2


ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "softplus": lambda z: np.logaddexp(z, 0),
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
    if X.dtype.kind != "f":
        X = X.astype(np.float64)
    if not np.isfinite(X).all():
        raise ValueError("X has missing or infinite values; fill them in")
    return X


@cache
def _arrays() -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(base64.b64decode(WEIGHTS)), allow_pickle=False) as arrays:
        return dict(arrays)


# --- rows of a CSV file ------------------------------------------------------------------------

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
TRUE, FALSE = ("true", "yes", "t", "y", "1"), ("false", "no", "f", "n", "0")


def read_csv(path: str) -> dict[str, list[str]]:
    """The columns of a file as text; the delimiter is the one its first line has most of."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        text = file.read()
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    filled = [row for row in rows if len(row) > 1 or "".join(row).strip()]
    if len(filled) < 2:
        raise ValueError(f"{path} has no rows below a line of column names")
    header, *records = filled
    if any(len(record) != len(header) for record in records):
        raise ValueError(f"every line of {path} must have the {len(header)} values of its header")
    cells = [[cell.strip() for cell in record] for record in records]
    if delimiter == ";":  # the custom of places that write 1,5 for 1.5
        comma = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
        cells = [[c.replace(",", ".") if comma.fullmatch(c) else c for c in row] for row in cells]
    names = [" ".join(name.split()) for name in header]
    return {name: [record[j] for record in cells] for j, name in enumerate(names)}


def encode(columns: dict[str, list[str]]) -> np.ndarray:
    """Columns of text as the rows X that the model takes: by name, or in order without names."""
    if MODEL["feature_names"] is None and len(columns) == MODEL["n_features"]:
        columns = {f"x{i}": cells for i, cells in enumerate(columns.values())}
    absent = [column["name"] for column in MODEL["columns"] if column["name"] not in columns]
    if absent:
        raise ValueError(f"missing columns: {absent}")
    features = [_features(column, columns[column["name"]]) for column in MODEL["columns"]]
    return np.hstack(features)


def _features(column: dict[str, Any], cells: list[str]) -> np.ndarray:
    if column["kind"] == "category":
        if not MODEL["fills_gaps"] and any(cell.lower() in MISSING for cell in cells):
            raise ValueError(f"column {column['name']!r} has missing values")
        return np.array([[cell == one for one in column["categories"]] for cell in cells], float)
    values = np.array([_value(cell, column) for cell in cells], float)
    if not MODEL["fills_gaps"] and np.isnan(values).any():
        raise ValueError(f"column {column['name']!r} has missing values")
    return np.where(np.isnan(values), column["fill"], values)[:, None]


def _value(cell: str, column: dict[str, Any]) -> float:
    """A cell as a number, NaN where it holds nothing finite."""
    try:
        value = PARSERS[column["kind"]](cell)
    except (ValueError, OverflowError):
        if cell.lower() not in MISSING:
            raise ValueError(
                f"column {column['name']!r} holds {cell!r}, which is no {column['kind']}"
            ) from None
        return math.nan
    return value if math.isfinite(value) else math.nan


def _number(cell: str) -> float:
    if "_" in cell:
        raise ValueError
    return float(cell)


def _boolean(cell: str) -> float:
    if cell.lower() not in TRUE + FALSE:
        raise ValueError
    return float(cell.lower() in TRUE)


def _date(cell: str) -> float:
    """Days since 1970-01-01."""
    moment = datetime.datetime.fromisoformat(cell.replace("/", "-"))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (moment - epoch) / datetime.timedelta(days=1)


PARSERS = {"number": _number, "boolean": _boolean, "date": _date}


def main(path: str) -> None:
    """Write what the model says of each row of a CSV file."""
    columns = read_csv(path)
    X = encode(columns)
    results: dict[str, Any] = {}
    if MODEL["id"] in columns:
        results[MODEL["id"]] = columns[MODEL["id"]]
    if MODEL["task"] == "coordinates":
        results |= {f"phi{k + 1}": column for k, column in enumerate(transform(X).T)}
    else:
        numbers = np.atleast_2d(predict(X).T)
        names = ["prediction"] if len(numbers) == 1 else [f"y{j + 1}" for j in range(len(numbers))]
        results |= dict(zip(names, numbers, strict=True))
    if MODEL["task"] == "classification":
        classes = zip(MODEL["classes"], predict_proba(X).T, strict=True)
        results |= {f"p({name})": column for name, column in classes}
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(results)
    writer.writerows(zip(*results.values(), strict=True))


WEIGHTS = ""

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} rows.csv")
    try:
        main(sys.argv[1])
    except (OSError, ValueError, csv.Error) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
