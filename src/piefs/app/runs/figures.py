"""The figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from piefs.data import Dataset, atomic
from piefs.estimators.base import BasePIEFS
from piefs.report import plot


def draw(estimator: BasePIEFS, readout: Any, data: Dataset, folder: Path) -> None:
    """All figures of a run, as PNG files; `readout` is what predicts, or None."""
    held_out = data.validation
    phi = estimator.transform(held_out.x)
    history = estimator.history_
    with mpl.rc_context(plot.STYLE):
        if held_out.x.shape[1] == 2:
            _draw_plane(estimator, readout, data, folder)
        elif phi.shape[1] > 1:
            save(_scatter_pairs(phi, data), folder / "coordinates.png")
        if data.is_regression:
            predicted, name = readout.predict(held_out.x), data.target_name
            ax = plot.predictions(held_out.y, predicted, label=name)
            ax.set_title("validation rows")
            save(ax, folder / "predictions.png")
        save(_gram_pair(phi), folder / "gram.png")
        save(_training_panels(history), folder / "training.png")
        if estimator.config_.schedule == "sequential":  # the weights are constants in the others
            save(plot.weight_history(history), folder / "weights.png")
        save(plot.energies(estimator.energies_), folder / "energies.png")


def _draw_plane(estimator: BasePIEFS, readout: Any, data: Dataset, folder: Path) -> None:
    """The leading maps over the plane, what the readout says there, and both in one overview."""
    x = data.validation.x
    y = None if data.is_regression else data.validation.y  # maps have the colours of signs
    maps = range(min(4, estimator.config_.n_components))

    save(plot.plane_maps(estimator.transform, x, y, maps=maps)[0], folder / "maps.png")
    if data.is_regression:
        name, surface = "prediction.png", _prediction_surface(readout, data)
    elif readout is not None and len(data.class_names) == 2:
        name, surface = "margin.png", _margin(readout, data)
    else:
        return
    save(surface(None), folder / name)
    axes = plot.panels(len(maps) + 1, width=3.5, height=3.0)
    plot.plane_maps(estimator.transform, x, y, maps=maps, axes=axes[:-1])
    surface(axes[-1])
    save(axes[0], folder / "overview.png")


def _margin(readout: Any, data: Dataset) -> Callable[[Any], Any]:
    """Draws the margin of the readout into given axes, or into new ones."""
    x, y = data.validation.x, data.validation.y
    return lambda ax: plot.plane_heatmap(
        readout.decision_function, x, y, ax=ax, title="margin of the readout", contour=True
    )


def _prediction_surface(readout: Any, data: Dataset) -> Callable[[Any], Any]:
    """Draws the predicted numbers into given axes, or into new ones."""
    x, y, name = data.validation.x, data.validation.y, data.target_name
    return lambda ax: plot.plane_prediction(
        readout.predict, x, y, ax=ax, title="prediction (dots: truth)", label=name
    )


def _scatter_pairs(phi: np.ndarray, data: Dataset) -> Any:
    """(φ₁, φ₂), (φ₃, φ₄), … as far as there are maps, three panels at most."""
    n_pairs = min(3, phi.shape[1] // 2)
    axes = plot.panels(n_pairs, width=4.4, height=3.8)
    for pair, ax in enumerate(axes):
        plot.coordinate_scatter(
            phi,
            data.validation.y,
            i=2 * pair,
            j=2 * pair + 1,
            class_names=data.class_names,
            label=data.target_name,
            ax=ax,
            with_key=pair == n_pairs - 1,
        )
    return axes[0]


def _gram_pair(phi: np.ndarray) -> Any:
    c = phi.T.astype(float) @ phi / len(phi)
    axes = plot.panels(2, width=4.5, height=3.7)
    plot.gram_matrix(c, ax=axes[0])
    plot.gram_matrix(c, ax=axes[1], residual=True)
    return axes[0]


def _training_panels(history: Sequence[dict[str, float]]) -> Any:
    """The Gram residual, and before it the score on validation rows where there is one."""
    scores = {"validation_accuracy": plot.accuracy_history, "validation_r2": plot.r2_history}
    drawn = [score for name, score in scores.items() if name in history[-1]] + [plot.gram_history]
    axes = plot.panels(len(drawn), width=5.5, height=3.3)
    for draw_one, ax in zip(drawn, axes, strict=True):
        draw_one(history, ax=ax)
    return axes[0]


def save(ax: Any, path: Path) -> None:
    """Write the figure of an axes, atomically, and close it."""
    atomic.write_with(path, lambda temporary: ax.figure.savefig(temporary))
    plt.close(ax.figure)
