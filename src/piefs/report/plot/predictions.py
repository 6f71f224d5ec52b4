"""Figures of predictions beside the truth, and of how a training went."""

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
        names = [style.shortened(name, 14) for name in class_names or range(n)]
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


CURVES: dict[str, tuple[str, str, dict[str, str]]] = {
    "losses": (
        "Losses",
        "loss",
        {"loss_class": "training", "validation_loss": "validation", "loss_mde": "Dirichlet energy"},
    ),
    "accuracy": ("Validation accuracy", "accuracy", {"validation_accuracy": ""}),
    "r2": ("Validation $R^2$", "$R^2$", {"validation_r2": ""}),
    "gram": ("Gram residual of the batch", "$\\|\\hat C_k - I_k\\|_F$", {"gram_residual": ""}),
    "weights": (
        "Loss weights",
        "weight",
        {"w_orth": "orthogonality", "w_class": "target", "w_mde": "smoothness"},
    ),
}
"""Curves of a history: title, axis, and the columns with their names in the legend."""


def history(
    rows: Sequence[dict[str, float]], what: str = "losses", *, ax: Axes | None = None
) -> Axes:
    """Curves of a training over its steps: `what` is one of `CURVES`.

    A loss that is zero throughout is not part of the run, and is left out. Faint lines mark where
    a map was frozen, if maps were trained one after the other.
    """
    ax = ax or plt.subplots(figsize=(4.6, 3.0))[1]
    title, label, names = CURVES[what]
    columns = {n: np.array([row.get(n, np.nan) for row in rows], float) for n in names}
    if what == "losses":
        columns = {n: v for n, v in columns.items() if np.nanmax(v, initial=0.0) > 0}
        ax.set_yscale("log" if columns else "linear")
    steps = np.array([row["step"] for row in rows])
    for (name, values), color in zip(columns.items(), style.CLASS_COLORS, strict=False):
        ax.plot(steps, values, label=names[name], color=color)
    frozen = steps[:-1][np.diff([row["map"] for row in rows]) > 0]
    for step in frozen:
        ax.axvline(step, color=style.FAINT, linewidth=0.8, zorder=0)
    ax.set_xlabel("training step" + (" (faint line: a map is frozen)" if len(frozen) else ""))
    ax.set(title=title, ylabel=label)
    ax.margins(x=0)
    if what in ("gram", "weights"):
        ax.set_ylim(bottom=0)
    elif what == "r2" and columns["validation_r2"].min() < -0.25 < columns["validation_r2"].max():
        ax.set_ylim(bottom=-0.25)  # values far below zero, early on, are cut off
    if any(names.values()) and columns:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=len(columns))
    return ax
