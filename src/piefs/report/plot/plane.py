"""Figures over the plane of two-dimensional inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection

from piefs.report.plot import style

Function = Callable[[np.ndarray], np.ndarray]
Extent = tuple[float, float, float, float]
N_POINTS = 300  # that are drawn over a surface
N_ACROSS = 12  # ellipses of a metric


def grid_of(x: np.ndarray, n: int = 120, margin: float = 0.08) -> tuple[np.ndarray, Extent]:
    """An n × n grid over the bounding box of planar points, as rows, and its extent."""
    low, high = x.min(axis=0), x.max(axis=0)
    low, high = low - margin * (high - low), high + margin * (high - low)
    first, second = np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n)
    rows = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    return rows.astype(np.float32), (low[0], high[0], low[1], high[1])


def plane_heatmap(
    function: Function,
    x: np.ndarray,
    y: np.ndarray | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
    contour: bool = False,
    label: str = "",
) -> Axes:
    """A function on the plane as colours, with points of x over it.

    Colours are around zero, and points have those of their classes. If y holds floats, colours are
    those of y, called `label`: a point whose prediction is right sinks into its surroundings.
    `contour` adds the zero level: the decision boundary of a margin.
    """
    ax = ax or plt.subplots(figsize=(4, 3.4))[1]
    rows, extent = grid_of(x)
    n, points = int(len(rows) ** 0.5), x[:N_POINTS].T
    values = np.asarray(function(rows)).reshape(n, n)
    ax.set(title=title, xlabel="x₁", ylabel="x₂")
    look: Any = {"extent": extent, "aspect": "auto", "interpolation": "bilinear"}
    image = ax.imshow(values, origin="lower", **look)
    if contour and values.min() < 0 < values.max():
        ax.contour(values, extent=extent, levels=[0.0], colors="k", linewidths=1.4)
    if y is not None and y.dtype.kind == "f":
        colors = style.number_colors(y)
        image.set(**colors)
        ax.scatter(*points, c=y[:N_POINTS], s=14, edgecolors="white", linewidths=0.5, **colors)
        style.color_bar(ax, image, label, extend="both")
    else:
        bound = np.quantile(np.abs(values), 0.99) or 1.0
        image.set(cmap=style.SIGNED_COLORS, clim=(-bound, bound))
        colors = "0.2" if y is None else [*map(style.class_color, y[:N_POINTS])]
        ax.scatter(*points, c=colors, s=8, edgecolors="white", linewidths=0.35)
        style.color_bar(ax, image, label)
    return ax


def plane_maps(
    coordinates: Function,
    x: np.ndarray,
    y: np.ndarray | None = None,
    *,
    maps: Sequence[int] = (0, 1, 2, 3),
) -> Sequence[Axes]:
    """The coordinate maps φ_j over the plane, one panel each."""
    axes = style.panels(len(maps), width=3.5, height=3.0)
    for ax, j in zip(axes, maps, strict=True):
        title = style.phi_name(j)
        plane_heatmap(lambda rows, j=j: coordinates(rows)[:, j], x, y, ax=ax, title=title)
    return axes


def plane_metric(
    matrices: Function, x: np.ndarray, y: np.ndarray | None = None, *, ax: Axes | None = None
) -> Axes:
    """The metric A(x) over the plane, as the ellipses {v : ‖A(x)v‖ = const} on a grid.

    An ellipse is long in the direction in which slopes are cheap: maps may vary along it, and are
    kept flat across it. `matrices` gives A at rows of the plane, shape (n, 2, 2).
    """
    ax = ax or plt.subplots(figsize=(4.8, 4))[1]
    rows, _ = grid_of(x, N_ACROSS, margin=0.0)
    _, singular, right = np.linalg.svd(np.asarray(matrices(rows), float))
    lengths = singular.min() / singular  # along the rows of `right`; the last is the longest
    lengths *= 0.9 * (np.ptp(x, axis=0) / N_ACROSS).min()
    angles = np.degrees(np.arctan2(right[:, 1, 1], right[:, 1, 0]))
    colors = style.GUIDE if y is None else [*map(style.class_color, y[:N_POINTS])]
    ax.scatter(*x[:N_POINTS].T, c=colors, s=6, alpha=0.5, linewidths=0)
    place: Any = {"units": "xy", "offsets": rows, "offset_transform": ax.transData}
    look: Any = {"facecolors": "none", "edgecolors": style.INK, "linewidths": 0.8}
    ax.add_collection(EllipseCollection(lengths[:, 1], lengths[:, 0], angles, **place, **look))
    ax.set_aspect("equal")
    ax.set(xlabel="x₁", ylabel="x₂")
    return ax
