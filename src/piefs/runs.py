"""A run: fit a model on a data set, measure it, and leave everything in one folder.

RUN/model/ (weights and document), metrics.json, history.csv and figures/. `piefs fit` and `piefs
demo` are thin shells around `run`.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from piefs import plot
from piefs.datasets import Dataset, Split
from piefs.estimators import PIEFSClassifier, PIEFSTransformer
from piefs.io import atomic
from piefs.io.models import library_versions

TASKS = ("classification", "unsupervised")


def run(
    dataset: Dataset, out: Path, *, task: str = "classification", **keywords: Any
) -> dict[str, Any]:
    """Fit with the given estimator keywords, write the run folder, return its metrics.

    Without labels (`task="unsupervised"`) accuracies are those of a logistic regression with
    scikit-learn's defaults, fitted on the training coordinates.
    """
    keywords = {"standardize": dataset.standardize} | keywords
    started = time.perf_counter()
    if task == "classification":
        estimator = PIEFSClassifier(**keywords).fit(
            dataset.train.x,
            dataset.train.y,
            validation_data=(dataset.validation.x, dataset.validation.y),
        )
        readout = estimator
    else:
        estimator = PIEFSTransformer(**keywords).fit(dataset.train.x)
        readout = Probe(estimator).fit(dataset.train.x, dataset.train.y)
    seconds = time.perf_counter() - started
    metrics = {"dataset": dataset.name, "task": task} | evaluate(estimator, readout, dataset)
    metrics |= {
        "seconds": seconds,
        "steps_per_second": estimator.n_iter_ / seconds,
        "versions": library_versions(),
        "config": estimator.settings_ | {"seed": estimator.seed_},
    }
    estimator.save(out / "model")
    write_history(out / "history.csv", estimator.history_)
    draw(estimator, readout, dataset, out / "figures")
    atomic.write_json(out / "metrics.json", metrics)
    return metrics


class Probe:
    """A linear probe: logistic regression on the coordinates of a fitted transformer."""

    def __init__(self, transformer: PIEFSTransformer) -> None:
        self.transformer = transformer

    def fit(self, x: np.ndarray, y: np.ndarray) -> Probe:
        """Fit on the coordinates of x, with scikit-learn's default settings."""
        self.regression = LogisticRegression().fit(self.transformer.transform(x), y)
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        """Class probabilities."""
        return self.regression.predict_proba(self.transformer.transform(x))

    def decision_function(self, x: np.ndarray) -> np.ndarray:
        """Margins, or logits."""
        return self.regression.decision_function(self.transformer.transform(x))


def evaluate(
    estimator: PIEFSClassifier | PIEFSTransformer, readout: PIEFSClassifier | Probe, data: Dataset
) -> dict[str, Any]:
    """Scores and Gram errors on every split, energies and log λ ranges of every map."""
    scores = {name: classification_scores(readout, part) for name, part in data.splits.items()}
    grams = {name: estimator.gram_errors(part.x) for name, part in data.splits.items()}
    last = estimator.history_[-1]
    return (
        _by_metric(scores)
        | _by_metric(grams)
        | {
            "gram_error_batch": last["gram_error"],
            "energies": estimator.energies_.tolist(),
            "log_scale_ranges": estimator.log_scale_ranges_.tolist(),
        }
    )


def _by_metric(by_split: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """{split: {metric: value}} turned into {metric: {split: value}}."""
    names = next(iter(by_split.values()))
    return {name: {split: row[name] for split, row in by_split.items()} for name in names}


def classification_scores(readout: PIEFSClassifier | Probe, part: Split) -> dict[str, float]:
    """Accuracy, F1 (of class 1 for two classes, else macro), ROC-AUC and log loss."""
    probabilities = readout.predict_proba(part.x)
    labels = np.arange(probabilities.shape[1])
    predicted = probabilities.argmax(axis=1)
    binary = len(labels) == 2
    return {
        "accuracy": float(accuracy_score(part.y, predicted)),
        "f1": float(f1_score(part.y, predicted, average="binary" if binary else "macro")),
        "roc_auc": float(
            roc_auc_score(part.y, probabilities[:, 1])
            if binary
            else roc_auc_score(part.y, probabilities, multi_class="ovr", labels=labels)
        ),
        "log_loss": float(log_loss(part.y, probabilities, labels=labels)),
    }


def write_history(path: Path, history: Sequence[dict[str, float]]) -> None:
    """The training history as CSV, one row an interval."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(history[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    atomic.write_bytes(path, buffer.getvalue().encode())


def draw(
    estimator: PIEFSClassifier | PIEFSTransformer,
    readout: PIEFSClassifier | Probe,
    data: Dataset,
    folder: Path,
) -> None:
    """All figures of a run, as PNG files."""
    held_out = data.validation
    phi = estimator.transform(held_out.x)
    history = estimator.history_
    with mpl.rc_context(plot.STYLE):
        if held_out.x.shape[1] == 2:
            _draw_plane(estimator, readout, data, folder)
        elif phi.shape[1] > 1:
            save(_scatter_pairs(phi, held_out, data.class_names), folder / "coordinates.png")
        save(_gram_pair(phi), folder / "gram.png")
        save(_training_panels(history), folder / "training.png")
        save(plot.weight_history(history), folder / "weights.png")
        save(plot.energies(estimator.energies_), folder / "energies.png")


def _draw_plane(
    estimator: PIEFSClassifier | PIEFSTransformer,
    readout: PIEFSClassifier | Probe,
    data: Dataset,
    folder: Path,
) -> None:
    """The leading maps over the plane, the readout's margin, and both in one overview."""
    x, y = data.validation.x, data.validation.y
    maps = range(min(4, estimator.config_.n_components))

    def margin(ax: Any = None) -> Any:
        title = "margin of the readout"
        return plot.plane_heatmap(readout.decision_function, x, y, ax=ax, title=title, contour=True)

    save(plot.plane_maps(estimator.transform, x, y, maps=maps)[0], folder / "maps.png")
    if len(data.class_names) == 2:
        save(margin(), folder / "margin.png")
        axes = plot.panels(len(maps) + 1, width=3.5, height=3.0)
        plot.plane_maps(estimator.transform, x, y, maps=maps, axes=axes[:-1])
        save(margin(axes[-1]), folder / "overview.png")


def _scatter_pairs(phi: np.ndarray, part: Split, class_names: Sequence[str]) -> Any:
    """(φ₁, φ₂), (φ₃, φ₄), … as far as there are maps, three panels at most."""
    n_pairs = min(3, phi.shape[1] // 2)
    axes = plot.panels(n_pairs, width=4.4, height=3.8)
    for pair, ax in enumerate(axes):
        plot.coordinate_scatter(
            phi, part.y, i=2 * pair, j=2 * pair + 1, class_names=class_names, ax=ax
        )
        if pair < n_pairs - 1 and (legend := ax.get_legend()):
            legend.remove()
    return axes[0]


def _gram_pair(phi: np.ndarray) -> Any:
    c = phi.T.astype(float) @ phi / len(phi)
    axes = plot.panels(2, width=4.5, height=3.7)
    plot.gram_matrix(c, ax=axes[0])
    plot.gram_matrix(c, ax=axes[1], residual=True)
    return axes[0]


def _training_panels(history: Sequence[dict[str, float]]) -> Any:
    scored = "validation_accuracy" in history[-1]
    axes = plot.panels(1 + scored, width=5.5, height=3.3)
    plot.gram_history(history, ax=axes[-1])
    if scored:
        plot.accuracy_history(history, ax=axes[0])
    return axes[0]


def save(ax: Any, path: Path) -> None:
    """Write the figure of an axes, atomically, and close it."""
    atomic.write_with(path, lambda temporary: ax.figure.savefig(temporary))
    plt.close(ax.figure)
