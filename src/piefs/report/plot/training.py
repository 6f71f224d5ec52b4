"""Figures of the history of a training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.report.plot.style import CLASS_COLORS, FAINT

History = Sequence[dict[str, float]]


def accuracy_history(history: History, *, ax: Axes | None = None) -> Axes:
    """Validation accuracy over training steps."""
    ax = _curves(history, {"validation_accuracy": ""}, scale=100.0, ax=ax)
    ax.set(title="Validation accuracy", ylabel="%")
    return ax


def r2_history(history: History, *, ax: Axes | None = None) -> Axes:
    """Validation R² over training steps; values far below zero, early on, are cut off."""
    ax = _curves(history, {"validation_r2": ""}, ax=ax)
    low, high = ax.dataLim.intervaly
    if low < -0.25 < high:
        ax.set_ylim(bottom=-0.25)
    ax.set(title="Validation $R^2$", ylabel="$R^2$")
    return ax


def gram_history(history: History, *, ax: Axes | None = None) -> Axes:
    """The batch Gram residual ‖Ĉ_k − I_k‖ over training steps."""
    ax = _curves(history, {"gram_residual": ""}, ax=ax)
    label = "$\\|\\hat C_k - I_k\\|_F$"
    ax.set(title="Gram residual of the batch", ylabel=label, ylim=(0, None))
    return ax


def weight_history(history: History, *, ax: Axes | None = None) -> Axes:
    """The three loss weights over training steps."""
    names = {"w_orth": "orthogonality", "w_class": "target", "w_mde": "smoothness"}
    ax = _curves(history, names, ax=ax)
    ax.set(title="Loss weights", ylabel="weight", ylim=(0, None))
    return ax


def loss_history(history: History, *, target: str = "target", ax: Axes | None = None) -> Axes:
    """The losses over training steps: of the readout, in training and held out, and of smoothness.

    `target` names what is learned. A loss that is zero throughout is not part of the run, and is
    left out.
    """
    names = {
        "loss_class": f"{target}, training",
        "validation_loss": f"{target}, validation",
        "loss_mde": "Dirichlet energy",
    }
    used = {n: names[n] for n in names if np.nanmax(_column(history, n), initial=0.0) > 0}
    ax = _curves(history, used, ax=ax)
    if used:
        ax.set_yscale("log")
    ax.set(title="Losses", ylabel="loss")
    return ax


def _column(history: History, name: str) -> np.ndarray:
    return np.array([row.get(name, np.nan) for row in history], dtype=float)


def _curves(
    history: History, names: dict[str, str], *, scale: float = 1.0, ax: Axes | None = None
) -> Axes:
    """Columns of the history over the steps, with a legend of their names if they have any.

    Faint lines mark where a map was frozen, if maps were trained one after the other.
    """
    ax = ax or plt.subplots(figsize=(4.6, 3.0))[1]
    steps = _column(history, "step")
    for (name, label), color in zip(names.items(), CLASS_COLORS, strict=False):
        ax.plot(steps, scale * _column(history, name), label=label, color=color)
    frozen = steps[:-1][np.diff(_column(history, "map")) > 0]
    for step in frozen:
        ax.axvline(step, color=FAINT, linewidth=0.8, zorder=0)
    ax.set_xlabel("training step" + (" (faint line: a map is frozen)" if len(frozen) else ""))
    ax.margins(x=0)
    if any(names.values()):
        columns = 1 if max(map(len, names.values())) > 14 else len(names)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)
    return ax
