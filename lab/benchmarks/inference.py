"""Rows a second of `transform` and `predict`, and the latency of a single row, against peers."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier
from umap import UMAP

from lab.benchmarks.machine import interleaved
from piefs import PIEFSClassifier

D, N_COMPONENTS, WIDTH = 8, 16, 64
FLOPS_PER_ROW = 2 * N_COMPONENTS * (D * WIDTH + 2 * WIDTH**2 + WIDTH)


def equal_width(d: int) -> int:
    """The width of three hidden layers whose products cost as much as those of all maps."""
    return next(w for w in range(1, 10_000) if 2 * (d * w + 2 * w * w + w) >= FLOPS_PER_ROW)


def run() -> dict[str, object]:
    """Models of equal arithmetic on eight features; UMAP as the embedding users know."""
    X, y = make_classification(20_000, D, n_informative=6, n_classes=3, random_state=0)
    X = X.astype(np.float32)
    few = {"n_components": N_COMPONENTS, "steps_per_component": 20, "activation": "relu"}
    ours = PIEFSClassifier(**few, random_state=0).fit(X, y)
    width = equal_width(D)
    mlp = MLPClassifier((width,) * 3, max_iter=2, random_state=0).fit(X, y)
    umap = UMAP(n_components=2, random_state=0, n_jobs=1).fit(X[:5_000])
    many = np.tile(X, (10, 1))
    throughput = interleaved(
        {
            "piefs transform": lambda: ours.transform(many),
            "piefs predict": lambda: ours.predict(many),
            "sklearn MLP predict": lambda: mlp.predict(many),
        }
    )
    embedding = interleaved({"umap transform": lambda: umap.transform(X[:1_000])}, repeats=3)
    single = interleaved(
        {
            "piefs transform": lambda: ours.transform(X[:1]),
            "piefs predict": lambda: ours.predict(X[:1]),
            "sklearn MLP predict": lambda: mlp.predict(X[:1]),
            "umap transform": lambda: umap.transform(X[:1]),
        },
        repeats=50,
    )
    rows = {name: round(len(many) / seconds) for name, seconds in throughput.items()}
    rows["umap transform"] = round(1_000 / embedding["umap transform"])
    return {
        "d": D,
        "n_components": N_COMPONENTS,
        "flop_per_row": FLOPS_PER_ROW,
        "mlp_hidden": [width] * 3,
        "rows_per_second": rows,
        "gflops": {
            name: round(rows[name] * FLOPS_PER_ROW / 1e9, 1)
            for name in ("piefs transform", "sklearn MLP predict")
        },
        "single_row_milliseconds": {name: round(1e3 * s, 3) for name, s in single.items()},
    }
