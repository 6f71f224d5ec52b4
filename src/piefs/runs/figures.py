"""The figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from piefs import plot
from piefs.datasets import Dataset, Split
from piefs.estimators import PIEFSClassifier, PIEFSTransformer
from piefs.io import atomic
from piefs.runs.scores import Probe


def draw(
    estimator: PIEFSClassifier | PIEFSTransformer,
    readout: PIEFSClassifier | Probe | None,
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
    readout: PIEFSClassifier | Probe | None,
    data: Dataset,
    folder: Path,
) -> None:
    """The leading maps over the plane, the readout's margin, and both in one overview."""
    x, y = data.validation.x, data.validation.y
    maps = range(min(4, estimator.config_.n_components))

    save(plot.plane_maps(estimator.transform, x, y, maps=maps)[0], folder / "maps.png")
    if readout is None or len(data.class_names) != 2:
        return
    style = {"title": "margin of the readout", "contour": True}
    save(plot.plane_heatmap(readout.decision_function, x, y, **style), folder / "margin.png")
    axes = plot.panels(len(maps) + 1, width=3.5, height=3.0)
    plot.plane_maps(estimator.transform, x, y, maps=maps, axes=axes[:-1])
    plot.plane_heatmap(readout.decision_function, x, y, ax=axes[-1], **style)
    save(axes[0], folder / "overview.png")


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
