"""Figures as functions: each draws into given or new matplotlib axes and returns them.

`plane_*` functions need two-dimensional inputs; the others work for any data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize

from piefs.metric_figures import plane_metric as plane_metric
from piefs.metric_figures import relevance_bars as relevance_bars
from piefs.metric_figures import relevance_image as relevance_image

CLASS_COLORS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"),
    *("#56b4e9", "#7a4b94", "#4d4d4d", "#8c6d31", "#b3de69"),
)
NUMBER_COLORS = "viridis"
STYLE: Any = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
}

matplotlib.rcParams.setdefault("mathtext.fontset", "dejavusans")


def grid_of(x: np.ndarray, n: int = 200, margin: float = 0.08) -> tuple[np.ndarray, tuple]:
    """An n × n grid over the bounding box of planar points, as rows, and its extent."""
    low, high = x.min(axis=0), x.max(axis=0)
    low, high = low - margin * (high - low), high + margin * (high - low)
    first, second = np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n)
    rows = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    return rows.astype(np.float32), (low[0], high[0], low[1], high[1])


def plane_heatmap(
    function: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
    contour: bool = False,
    n_points: int = 400,
) -> Axes:
    """A function on the plane as colours around zero, with points of x over it.

    `contour` adds the zero level: the decision boundary of a margin.
    """
    ax = ax or plt.subplots(figsize=(4, 3.4))[1]
    rows, extent = grid_of(x)
    n = int(len(rows) ** 0.5)
    values = np.asarray(function(rows)).reshape(n, n)
    bound = np.quantile(np.abs(values), 0.99) or 1.0
    image = ax.imshow(
        values, origin="lower", extent=extent, cmap="RdBu_r", vmin=-bound, vmax=bound, aspect="auto"
    )
    if contour and values.min() < 0 < values.max():
        ax.contour(values, levels=[0.0], extent=extent, colors="k", linewidths=1.4)
    _scatter_plane(ax, x[:n_points], None if y is None else y[:n_points])
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return ax


def _scatter_plane(ax: Axes, x: np.ndarray, y: np.ndarray | None) -> None:
    colors = "0.2" if y is None else [CLASS_COLORS[label % len(CLASS_COLORS)] for label in y]
    ax.scatter(x[:, 0], x[:, 1], c=colors, s=8, edgecolors="white", linewidths=0.35)


def _colors_of(y: np.ndarray) -> dict[str, Any]:
    """Colours for numbers, from the first to the last percentile: outliers would fade the rest."""
    low, high = np.quantile(y, [0.01, 0.99])
    return {"cmap": NUMBER_COLORS, "norm": Normalize(low, high)}


def _color_bar(ax: Axes, image: Any, label: str) -> None:
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, extend="both", label=label)


def plane_prediction(
    function: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    *,
    ax: Axes | None = None,
    title: str = "",
    label: str = "y",
    n_points: int = 400,
) -> Axes:
    """Predicted numbers on the plane with points of x over them, filled with the true ones.

    Both have the same colours: where a prediction is right, a point sinks into it.
    """
    ax = ax or plt.subplots(figsize=(4.4, 3.4))[1]
    rows, extent = grid_of(x)
    n = int(len(rows) ** 0.5)
    values, style = np.asarray(function(rows)).reshape(n, n), _colors_of(y)
    image = ax.imshow(values, origin="lower", extent=extent, aspect="auto", **style)
    x, y = x[:n_points], y[:n_points]
    ax.scatter(x[:, 0], x[:, 1], c=y, s=14, edgecolors="white", linewidths=0.5, **style)
    _color_bar(ax, image, label)
    ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return ax


def panels(n: int, *, width: float, height: float) -> Sequence[Axes]:
    """A row of n axes, spaced so that labels do not collide."""
    size = (width * n, height)
    return plt.subplots(1, n, figsize=size, squeeze=False, layout="constrained")[1][0]


def plane_maps(
    coordinates: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray | None = None,
    *,
    maps: Sequence[int] = (0, 1, 2, 3),
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """The coordinate maps φ_j over the plane, one panel each."""
    axes = panels(len(maps), width=3.5, height=3.0) if axes is None else axes
    for ax, j in zip(axes, maps, strict=True):
        plane_heatmap(
            lambda rows, j=j: coordinates(rows)[:, j], x, y, ax=ax, title=f"$\\phi_{{{j + 1}}}$"
        )
    return axes


def gram_matrix(c: np.ndarray, *, ax: Axes | None = None, residual: bool = False) -> Axes:
    """A Gram matrix C, or with `residual` C − I, with its distance from the identity."""
    ax = ax or plt.subplots(figsize=(4.2, 3.6))[1]
    deviation = c - np.eye(len(c))
    shown, bound = (deviation, np.abs(deviation).max() or 1.0) if residual else (c, 1.0)
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-bound, vmax=bound)
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    ticks = np.arange(0, len(c), max(1, len(c) // 8))
    ax.set_xticks(ticks, [f"$\\phi_{{{t + 1}}}$" for t in ticks])
    ax.set_yticks(ticks, [f"$\\phi_{{{t + 1}}}$" for t in ticks])
    name = "C − I" if residual else "C"
    ax.set_title(f"{name},  ‖C − I‖ = {np.linalg.norm(deviation):.3f}")
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


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


def energies(values: Sequence[float] | np.ndarray, *, ax: Axes | None = None) -> Axes:
    """The Dirichlet energy of each map, with the metric as it was when the map was frozen."""
    ax = ax or plt.subplots(figsize=(5, 3.2))[1]
    ax.bar(np.arange(1, len(values) + 1), values, color=CLASS_COLORS[0])
    ax.set(title="Dirichlet energy by map", xlabel="map", ylabel="$E\\,\\|A\\nabla\\phi_k\\|^2$")
    return ax


def coordinate_scatter(
    phi: np.ndarray,
    y: np.ndarray | None = None,
    *,
    i: int = 0,
    j: int = 1,
    class_names: Sequence[str] = (),
    label: str = "y",
    with_key: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """φ_j against φ_i, coloured by class, or by number where y holds floats (called `label`).

    `with_key` adds the legend, or the colour bar.
    """
    ax = ax or plt.subplots(figsize=(4.6, 4))[1]
    points: Any = {"x": phi[:, i], "y": phi[:, j], "s": 6, "alpha": 0.6, "linewidths": 0}
    if y is not None and y.dtype.kind == "f":
        rimmed = {"s": 11, "alpha": 0.9, "edgecolors": "0.5", "linewidths": 0.25}  # on white
        image = ax.scatter(**points | rimmed, c=y, **_colors_of(y))
        if with_key:
            _color_bar(ax, image, label)
    else:
        drawn = ax.scatter(**points, **_class_colors(y, len(phi)))
        if with_key and y is not None:
            _legend(ax, drawn, class_names, int(y.max()) + 1)
    ax.set(xlabel=f"$\\phi_{{{i + 1}}}$", ylabel=f"$\\phi_{{{j + 1}}}$")
    return ax


def _class_colors(y: np.ndarray | None, n: int) -> dict[str, Any]:
    labels = np.zeros(n, int) if y is None else y
    used = [CLASS_COLORS[c % len(CLASS_COLORS)] for c in range(int(labels.max()) + 1)]
    return {"c": labels, "cmap": ListedColormap(used)}


def _legend(ax: Axes, drawn: Any, class_names: Sequence[str], n_classes: int) -> None:
    if n_classes <= 20:
        handles = drawn.legend_elements(num=list(range(n_classes)))[0]
        names = class_names or [str(c) for c in range(n_classes)]
        ax.legend(handles, names, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=1)


def predictions(
    y: np.ndarray, predicted: np.ndarray, *, label: str = "y", ax: Axes | None = None
) -> Axes:
    """Predicted numbers against true ones; on the diagonal they agree."""
    ax = ax or plt.subplots(figsize=(4.4, 4.2))[1]
    both = np.concatenate([y, predicted])
    room = 0.04 * (both.max() - both.min() or 1.0)
    limits = (both.min() - room, both.max() + room)
    ax.plot(limits, limits, color="0.6", linewidth=1, zorder=0)
    ax.scatter(y, predicted, s=10, alpha=0.6, linewidths=0, color=CLASS_COLORS[0])
    ax.set(xlabel=f"{label}, true", ylabel=f"{label}, predicted", xlim=limits, ylim=limits)
    ax.set_aspect("equal")
    return ax
