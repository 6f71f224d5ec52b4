"""How the defaults do on data of many kinds: few rows, rare classes, many classes, embeddings.

    python -m lab.experiments.defaults

prints accuracy and log loss on held-out rows beside logistic regression and a random forest. The
rows are drawn here, or come with scikit-learn; nothing is tuned on them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lab.experiments.records import recorded
from piefs import PIEFSClassifier
from piefs.training.runtime import keep_compiled

Table = tuple[np.ndarray, np.ndarray]


def iris() -> Table:
    """150 rows of three classes."""
    return load_iris(return_X_y=True)


def rare(n: int = 3000) -> Table:
    """A class of 5 % of the rows, inside a shell of the other, in six dimensions."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 6))
    score = -np.linalg.norm(x[:, :3], axis=1) + 0.2 * rng.normal(size=n)
    return x, (score > np.quantile(score, 0.95)).astype(int)


def many_classes(n_classes: int = 100, a_class: int = 30) -> Table:
    """A hundred classes of thirty rows, each a cloud around a point in twenty dimensions."""
    rng = np.random.default_rng(0)
    centers = 2 * rng.normal(size=(n_classes, 20))
    y = np.repeat(np.arange(n_classes), a_class)
    return centers[y] + rng.normal(size=(len(y), 20)), y


def embeddings(n: int = 2000, n_features: int = 384) -> Table:
    """Unit vectors in 384 dimensions: eight topics in a plane of ten, and noise all around."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 8, n)
    topics = rng.normal(size=(8, 10))
    x = (topics[y] + 0.9 * rng.normal(size=(n, 10))) @ rng.normal(size=(10, n_features))
    x += 2.0 * rng.normal(size=x.shape)
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


TABLES: dict[str, Callable[[], Table]] = {
    "iris": iris,
    "rare": rare,
    "many-classes": many_classes,
    "embeddings": embeddings,
}
METHODS: dict[str, Callable] = {
    "logistic regression": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=2000)
    ),
    "random forest": lambda: RandomForestClassifier(300, random_state=0),
    "piefs": lambda: PIEFSClassifier(random_state=0),
    "piefs, K = auto": lambda: PIEFSClassifier("auto", random_state=0),
}


def main(names: list[str]) -> None:
    """Fit each method on each table, as far as that is not done, and print a line for each."""
    keep_compiled()
    for name in names or list(TABLES):
        x, y = TABLES[name]()
        parts = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
        for method, make in METHODS.items():
            measure = partial(_measured, make, *parts)
            record = recorded("defaults", name, method, 0, measure)
            print(f"{name:14s} {method:20s} {_described(record)}", flush=True)


def _measured(make: Callable, x, held_x, y, held_y) -> dict[str, Any]:
    model, begun = make(), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
    seconds = time.monotonic() - begun
    p = model.predict_proba(held_x)
    guess = p.argmax(axis=1)
    return {
        "accuracy": float(accuracy_score(held_y, guess)),
        "balanced_accuracy": float(balanced_accuracy_score(held_y, guess)),
        "log_loss": float(log_loss(held_y, p)),
        "seconds": seconds,
        "n_maps": getattr(model, "n_components_", None),
        "warned": [finding.kind for finding in getattr(model, "warnings_", ())],
        "settings": model.settings_.document() if hasattr(model, "settings_") else None,
    }


def _described(record: dict[str, Any]) -> str:
    maps = f" K={record['n_maps']}" if record["n_maps"] else ""
    return (
        f"accuracy {100 * record['accuracy']:.1f}, "
        f"balanced {100 * record['balanced_accuracy']:.1f}, "
        f"log loss {record['log_loss']:.3f}, {record['seconds']:.0f} s{maps} "
        f"{', '.join(record['warned'])}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
