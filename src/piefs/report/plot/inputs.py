"""Figures of what the inputs do to the coordinates, by the maps and by the metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.report.plot import style


def partial_dependence(
    values: np.ndarray,
    curves: np.ndarray,
    *,
    name: str = "x",
    ax: Axes | None = None,
) -> Axes:
    """The mean of each φ_k, shape (n, K), as one input takes the given values in all rows."""
    ax = ax or plt.subplots(figsize=(3.6, 2.8))[1]
    line = "o-" if len(values) <= 2 else "-"
    for k, label in enumerate(style.phi_names(range(curves.shape[1]))):
        ax.plot(values, curves[:, k], line, color=style.class_color(k), label=label, ms=4)
    ax.axhline(0, color=style.GUIDE, linewidth=0.6, zorder=0)
    ax.set(xlabel=style.shortened(name, 40), ylabel="mean of $\\phi_k$")
    return ax


def relevance_by_map(
    relevance: np.ndarray,
    names: Sequence[str] = (),
    *,
    ax: Axes | None = None,
    n_most: int = 20,
) -> Axes:
    """Which inputs each map uses: the share of its mean squared slope, inputs × maps.

    `relevance` has shape (d, K), its columns sum to one; at most `n_most` inputs are shown, those
    with the largest sum on top.
    """
    order = np.argsort(-relevance.sum(axis=1), kind="stable")[:n_most]
    n_maps = relevance.shape[1]
    size = (2.4 + 0.34 * n_maps, max(2.2, 1.0 + 0.25 * len(order)))
    ax = ax or plt.subplots(figsize=size)[1]
    image = ax.imshow(relevance[order], cmap=style.SHARE_COLORS, vmin=0, aspect="auto")
    style.color_bar(ax, image, "share of the map's slope")
    ax.set_yticks(np.arange(len(order)), _labels(order, names, 32))
    ticks = np.arange(0, n_maps, max(1, n_maps // 16))
    ax.set_xticks(ticks, style.phi_names(ticks))
    return style.without_frame(ax)


def relevance_bars(
    relevance: np.ndarray,
    names: Sequence[str] = (),
    *,
    ax: Axes | None = None,
    title: str = "",
    label: str = "relevance",
    n_most: int = 20,
) -> Axes:
    """The relevance of columns, the most relevant on top, at most `n_most` of them."""
    order = np.argsort(relevance)[::-1][:n_most]
    ax = ax or plt.subplots(figsize=(4, 0.6 + 0.26 * len(order)))[1]
    ax.barh(np.arange(len(order)), relevance[order], color=style.CLASS_COLORS[0])
    ax.set_yticks(np.arange(len(order)), _labels(order, names, 24))
    ax.invert_yaxis()
    more = f", {len(order)} of {len(relevance)} columns" if len(order) < len(relevance) else ""
    ax.set(title=title, xlabel=f"{label}{more}")
    return ax


def _labels(order: np.ndarray, names: Sequence[str], most: int) -> list[str]:
    return [
        style.shortened(names[i], most) if names else f"$x_{{{i + 1}}}$" for i in map(int, order)
    ]


def relevance_image(
    relevance: np.ndarray,
    shape: tuple[int, int] = (28, 28),
    *,
    ax: Axes | None = None,
    title: str = "",
    label: str = "relevance",
) -> Axes:
    """The relevance of pixels, as an image."""
    ax = ax or plt.subplots(figsize=(2.6, 2.3))[1]
    shown = ax.imshow(np.reshape(relevance, shape), cmap=style.SHARE_COLORS, vmin=0)
    style.color_bar(ax, shown, label)
    ax.set(title=title, xticks=[], yticks=[])
    return style.without_frame(ax)
