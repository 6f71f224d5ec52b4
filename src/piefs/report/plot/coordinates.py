"""Figures of the coordinates: orthonormality, smoothness, use, rows, and what inputs do to them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator

from piefs.report.plot import style

MOST_IN_LEGEND, MOST_INPUTS = 20, 20


def gram_matrix(c: np.ndarray, *, ax: Axes | None = None) -> Axes:
    """A Gram matrix C, with its distance from the identity."""
    ax = ax or plt.subplots(figsize=(4.2, 3.6))[1]
    image = ax.imshow(c, cmap=style.SIGNED_COLORS, vmin=-1, vmax=1)
    style.color_bar(ax, image)
    ticks = range(0, len(c), max(1, len(c) // 8))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [*map(style.phi_name, ticks)])
    ax.set_title(f"C,  ‖C − I‖ = {np.linalg.norm(c - np.eye(len(c))):.3f}")
    return style.without_frame(ax)


def energies(values: Sequence[float] | np.ndarray, *, ax: Axes | None = None) -> Axes:
    """The Dirichlet energy of each map, in the metric that it was fitted with."""
    ax = ax or plt.subplots(figsize=(4.4, 3.0))[1]
    ax.bar(np.arange(1, len(values) + 1), values, color=style.CLASS_COLORS[0])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(title="Dirichlet energy by map", xlabel="map", ylabel="energy")
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
    """φ_j against φ_i, coloured by class, or by number (called `label`) if y holds floats.

    `with_key` adds the legend, or the colour bar.
    """
    ax = ax or plt.subplots(figsize=(4.6, 4))[1]
    if y is not None and y.dtype.kind == "f":
        rimmed: Any = {"s": 11, "alpha": 0.9, "edgecolors": "0.5", "linewidths": 0.25}  # on white
        image = ax.scatter(phi[:, i], phi[:, j], c=y, **rimmed, **style.number_colors(y))
        if with_key:
            style.color_bar(ax, image, label, extend="both")
    else:
        labels = np.zeros(len(phi), int) if y is None else y
        n_classes = int(labels.max()) + 1
        colors = ListedColormap([*map(style.class_color, range(n_classes))])
        plain: Any = {"s": 6, "alpha": 0.6, "linewidths": 0}
        drawn = ax.scatter(phi[:, i], phi[:, j], c=labels, cmap=colors, **plain)
        if with_key and y is not None and n_classes <= MOST_IN_LEGEND:
            handles = drawn.legend_elements(num=list(range(n_classes)))[0]
            names = [*map(style.literal, class_names or range(n_classes))]
            ax.legend(handles, names, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=1)
    ax.set(xlabel=style.phi_name(i), ylabel=style.phi_name(j))
    return ax


def score_by_maps(
    n_kept: Sequence[int] | np.ndarray,
    scores: dict[str, Sequence[float]],
    *,
    label: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """The score of a linear probe on the first maps, by how many are kept; one line a split."""
    ax = ax or plt.subplots(figsize=(4.4, 3.0))[1]
    for (name, values), color in zip(scores.items(), style.CLASS_COLORS, strict=False):
        ax.plot(n_kept, values, "o-", color=color, ms=4, label=name)
    ax.set(title="Score by maps kept", xlabel="leading maps kept", ylabel=label)
    ax.set_xticks(list(n_kept), [str(n) for n in n_kept])
    if len(scores) > 1:
        ax.legend(loc="lower right")
    return ax


def partial_dependence(
    values: np.ndarray, curves: np.ndarray, *, name: str = "x", ax: Axes | None = None
) -> Axes:
    """The mean of each φ_k, shape (n, K), as one input takes the given values in all rows."""
    ax = ax or plt.subplots(figsize=(3.6, 2.8))[1]
    line = "o-" if len(values) <= 2 else "-"
    for k, curve in enumerate(curves.T):
        ax.plot(values, curve, line, color=style.class_color(k), label=style.phi_name(k), ms=4)
    ax.axhline(0, color=style.GUIDE, linewidth=0.6, zorder=0)
    ax.set(xlabel=style.shortened(name, 40), ylabel="mean of φₖ")
    return ax


def relevance_by_map(
    relevance: np.ndarray, names: Sequence[str] = (), *, ax: Axes | None = None
) -> Axes:
    """Which inputs each map uses: the share of its mean squared slope, inputs × maps.

    `relevance` is (d, K), its columns sum to one; the 20 inputs with the largest sums are shown.
    """
    order = np.argsort(-relevance.sum(axis=1), kind="stable")[:MOST_INPUTS]
    n_maps = relevance.shape[1]
    size = (2.4 + 0.34 * n_maps, max(2.2, 1.0 + 0.25 * len(order)))
    ax = ax or plt.subplots(figsize=size)[1]
    image = ax.imshow(relevance[order], cmap=style.SHARE_COLORS, vmin=0, aspect="auto")
    style.color_bar(ax, image, "share of the map's slope")
    ax.set_yticks(np.arange(len(order)), _labels(order, names, 32))
    ticks = range(0, n_maps, max(1, n_maps // 16))
    ax.set_xticks(ticks, [*map(style.phi_name, ticks)])
    return style.without_frame(ax)


def relevance_bars(
    relevance: np.ndarray,
    names: Sequence[str] = (),
    *,
    ax: Axes | None = None,
    label: str = "relevance",
) -> Axes:
    """The relevance of columns, the most relevant on top, at most 20 of them."""
    order = np.argsort(relevance)[::-1][:MOST_INPUTS]
    ax = ax or plt.subplots(figsize=(4, 0.6 + 0.26 * len(order)))[1]
    ax.barh(np.arange(len(order)), relevance[order], color=style.CLASS_COLORS[0])
    ax.set_yticks(np.arange(len(order)), _labels(order, names, 24))
    ax.invert_yaxis()
    more = f", {len(order)} of {len(relevance)} columns" if len(order) < len(relevance) else ""
    ax.set(xlabel=f"{label}{more}")
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
