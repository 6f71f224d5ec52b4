"""Pictures of a metric: ellipses over the plane, and the relevance of columns and of pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection

POINTS, ELLIPSES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"), "0.15"


def plane_metric(
    matrices: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
    n_across: int = 12,
    n_points: int = 400,
) -> Axes:
    """The metric A(x) over the plane, as the ellipses {v : ‖A(x)v‖ = const} on a grid.

    An ellipse is long where a slope is cheap: along it maps may vary, across it they are kept flat.
    `matrices` gives A at rows of the plane, shape (n, 2, 2).
    """
    ax = ax or plt.subplots(figsize=(4.8, 4))[1]
    low, high = x.min(axis=0), x.max(axis=0)
    steps = (high - low) / n_across
    axes = [np.linspace(a, b, n_across) for a, b in zip(low, high, strict=True)]
    rows = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2).astype(np.float32)
    widths, heights, angles = _ellipses(matrices(rows), 0.9 * steps.min())
    shown = slice(n_points)
    colors = "0.6" if y is None else [POINTS[int(label) % len(POINTS)] for label in y[shown]]
    ax.scatter(x[shown, 0], x[shown, 1], c=colors, s=6, alpha=0.5, linewidths=0)
    drawn = EllipseCollection(
        widths,
        heights,
        angles,
        units="xy",
        offsets=rows,
        offset_transform=ax.transData,
        facecolors="none",
        edgecolors=ELLIPSES,
        linewidths=0.8,
    )
    ax.add_collection(drawn)
    ax.set_aspect("equal")
    ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return ax


def _ellipses(matrices: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes and angles (in degrees) of {v : ‖Av‖ = 1}, the longest of them scaled to `size`."""
    _, singular, right = np.linalg.svd(np.asarray(matrices, float))
    lengths = 1 / singular  # along the rows of `right`; the last is the longest
    lengths *= size / lengths.max()
    directions = right[:, 1]
    angles = np.degrees(np.arctan2(directions[:, 1], directions[:, 0]))
    return lengths[:, 1], lengths[:, 0], angles


def relevance_bars(
    relevance: np.ndarray,
    names: Sequence[str] = (),
    *,
    ax: Axes | None = None,
    title: str = "",
    n_most: int = 20,
) -> Axes:
    """The relevance of columns, the most relevant on top, at most `n_most` of them."""
    order = np.argsort(relevance)[::-1][:n_most]
    labels = [str(names[i]) if names else f"$x_{{{i + 1}}}$" for i in order.tolist()]
    ax = ax or plt.subplots(figsize=(5, 0.6 + 0.26 * len(order)))[1]
    ax.barh(np.arange(len(order)), relevance[order], color=POINTS[0])
    ax.set_yticks(np.arange(len(order)), labels)
    ax.invert_yaxis()
    more = f", {len(order)} of {len(relevance)} columns" if len(order) < len(relevance) else ""
    ax.set(title=title, xlabel=f"relevance{more}")
    return ax


def relevance_image(
    relevance: np.ndarray,
    shape: tuple[int, int] = (28, 28),
    *,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """The relevance of pixels, as an image."""
    ax = ax or plt.subplots(figsize=(3.8, 3.3))[1]
    shown = ax.imshow(np.reshape(relevance, shape), cmap="magma", vmin=0)
    ax.figure.colorbar(shown, ax=ax, fraction=0.046, pad=0.03, label="relevance")
    ax.set(title=title, xticks=[], yticks=[])
    return ax
