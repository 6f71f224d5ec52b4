"""Figures of the history of a training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.report.plot.style import CLASS_COLORS


def _column(history: Sequence[dict[str, float]], name: str) -> np.ndarray:
    return np.array([row.get(name, np.nan) for row in history], dtype=float)


def _mark_maps(ax: Axes, history: Sequence[dict[str, float]]) -> None:
    """Faint lines where a map was frozen, if maps were frozen one after the other."""
    steps, maps = _column(history, "step"), _column(history, "map")
    frozen = steps[:-1][np.diff(maps) > 0]
    for step in frozen:
        ax.axvline(step, color="0.9", linewidth=0.8, zorder=0)
    ax.set_xlabel("training step" + (" (a faint line: a map is frozen)" if len(frozen) else ""))
    ax.margins(x=0)


def accuracy_history(history: Sequence[dict[str, float]], *, ax: Axes | None = None) -> Axes:
    """Validation accuracy over training steps."""
    ax = ax or plt.subplots(figsize=(6, 3.2))[1]
    accuracy = 100 * _column(history, "validation_accuracy")
    ax.plot(_column(history, "step"), accuracy, color=CLASS_COLORS[0])
    _mark_maps(ax, history)
    ax.set(title="Validation accuracy", ylabel="%")
    return ax


def r2_history(history: Sequence[dict[str, float]], *, ax: Axes | None = None) -> Axes:
    """Validation R² over training steps; what is far below zero, early on, is cut off."""
    ax = ax or plt.subplots(figsize=(6, 3.2))[1]
    r2 = _column(history, "validation_r2")
    ax.plot(_column(history, "step"), r2, color=CLASS_COLORS[0])
    _mark_maps(ax, history)
    lowest = np.nanmin(r2)
    if lowest < -0.25 < np.nanmax(r2):
        ax.set_ylim(bottom=-0.25)
    ax.set(title="Validation $R^2$", ylabel="$R^2$")
    return ax


def gram_history(history: Sequence[dict[str, float]], *, ax: Axes | None = None) -> Axes:
    """The batch Gram residual ‖Ĉ_k − I_k‖ over training steps."""
    ax = ax or plt.subplots(figsize=(6, 3.2))[1]
    ax.plot(_column(history, "step"), _column(history, "gram_residual"), color=CLASS_COLORS[1])
    _mark_maps(ax, history)
    ax.set(title="Gram residual of the batch", ylabel="$\\|\\hat C_k - I_k\\|_F$", ylim=(0, None))
    return ax


def weight_history(history: Sequence[dict[str, float]], *, ax: Axes | None = None) -> Axes:
    """The three loss weights over training steps."""
    ax = ax or plt.subplots(figsize=(6, 3.2))[1]
    names = {"w_orth": "orthogonality", "w_class": "target", "w_mde": "smoothness"}
    for (name, label), color in zip(names.items(), CLASS_COLORS, strict=False):
        ax.plot(_column(history, "step"), _column(history, name), label=label, color=color)
    _mark_maps(ax, history)
    ax.set(title="Loss weights", ylabel="weight", ylim=(0, None))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3)
    return ax


def loss_history(
    history: Sequence[dict[str, float]], *, target: str = "target", ax: Axes | None = None
) -> Axes:
    """The losses over training steps: of the readout, in training and held out, and of smoothness.

    `target` names what is learned. What is zero throughout, since there is no such loss in the run,
    is left out.
    """
    ax = ax or plt.subplots(figsize=(6, 3.2))[1]
    names = {
        "loss_class": f"{target}, training",
        "validation_loss": f"{target}, validation",
        "loss_mde": "Dirichlet energy",
    }
    for (name, label), color in zip(names.items(), CLASS_COLORS, strict=False):
        values = _column(history, name)
        if np.any(values[np.isfinite(values)] > 0):
            ax.plot(_column(history, "step"), values, label=label, color=color)
    _mark_maps(ax, history)
    if ax.lines:
        ax.set_yscale("log")
    ax.set(title="Losses", ylabel="loss")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3)
    return ax
