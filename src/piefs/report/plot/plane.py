"""Figures over the plane of two-dimensional inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.report.plot.style import CLASS_COLORS, color_bar, number_colors, panels


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
    values, style = np.asarray(function(rows)).reshape(n, n), number_colors(y)
    image = ax.imshow(values, origin="lower", extent=extent, aspect="auto", **style)
    x, y = x[:n_points], y[:n_points]
    ax.scatter(x[:, 0], x[:, 1], c=y, s=14, edgecolors="white", linewidths=0.5, **style)
    color_bar(ax, image, label)
    ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return ax


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
