"""Figures of predictions beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.report.plot import style


def predictions(
    y: np.ndarray, predicted: np.ndarray, *, label: str = "y", ax: Axes | None = None
) -> Axes:
    """Predicted numbers against true ones; on the diagonal they agree."""
    ax = ax or plt.subplots(figsize=(4.2, 4.0))[1]
    both = np.concatenate([y, predicted])
    room = 0.04 * (both.max() - both.min() or 1.0)
    limits = (both.min() - room, both.max() + room)
    ax.plot(limits, limits, color=style.GUIDE, linewidth=1, zorder=0)
    ax.scatter(y, predicted, s=10, alpha=0.6, linewidths=0, color=style.CLASS_COLORS[0])
    name = style.literal(label)
    ax.set(xlabel=f"{name}, true", ylabel=f"{name}, predicted", xlim=limits, ylim=limits)
    ax.set_aspect("equal")
    return ax


def residuals(
    y: np.ndarray, predicted: np.ndarray, *, label: str = "y", ax: Axes | None = None
) -> Axes:
    """Residuals, true minus predicted, against the prediction: a level band is good."""
    ax = ax or plt.subplots(figsize=(4.4, 3.6))[1]
    ax.axhline(0, color=style.GUIDE, linewidth=1, zorder=0)
    ax.scatter(predicted, y - predicted, s=10, alpha=0.6, linewidths=0, color=style.CLASS_COLORS[0])
    ax.set(xlabel=f"{style.literal(label)}, predicted", ylabel="true − predicted")
    return ax


def confusion_matrix(
    counts: np.ndarray, class_names: Sequence[str] = (), *, ax: Axes | None = None
) -> Axes:
    """How rows of each true class (a row of `counts`) were predicted (a column).

    Colours are shares of the true class; up to 12 classes are named and have their counts written.
    """
    n = len(counts)
    few = n <= 12
    side = 2.2 + 0.24 * n if few else 5.4
    ax = ax or plt.subplots(figsize=(side + 0.7, side))[1]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap=style.SHARE_COLORS, vmin=0, vmax=1)
    style.color_bar(ax, image, "share of the true class")
    if few:
        names = [
            style.shortened(class_names[c] if len(class_names) else str(c), 14) for c in range(n)
        ]
        ax.set_xticks(range(n), names, rotation=90 if max(map(len, names)) > 2 else 0)
        ax.set_yticks(range(n), names)
        for (row, column), count in np.ndenumerate(counts):
            if count:
                color = "white" if shares[row, column] > 0.55 else "0.15"
                ax.text(column, row, f"{count}", ha="center", va="center", color=color, size=8)
    ax.set(xlabel="predicted", ylabel="true")
    return style.without_frame(ax)


def reliability(
    confidence: np.ndarray, accuracy: np.ndarray, counts: np.ndarray, *, ax: Axes | None = None
) -> Axes:
    """The share of correct rows by confidence; on the diagonal the two are equal.

    One dot for each bin of confidence: its mean confidence, the share of its rows that are
    predicted correctly, and their number, which sets the size of the dot.
    """
    ax = ax or plt.subplots(figsize=(4.0, 3.6))[1]
    ax.plot([0, 1], [0, 1], color=style.GUIDE, linewidth=1, zorder=0)
    sizes = 15 + 160 * counts / max(counts.max(), 1)
    ax.vlines(confidence, confidence, accuracy, color=style.CLASS_COLORS[1], linewidth=1.4)
    look: Any = {"color": style.CLASS_COLORS[0], "alpha": 0.85, "linewidths": 0, "clip_on": False}
    ax.scatter(confidence, accuracy, s=sizes, **look)
    ax.set(xlabel="confidence", ylabel="share correct", xlim=(0, 1), ylim=(0, 1))
    ax.set_aspect("equal")
    return ax
