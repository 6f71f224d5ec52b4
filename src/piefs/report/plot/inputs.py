"""Figures of what the inputs do to the coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.report.plot.style import CLASS_COLORS, phi_names, shortened


def partial_dependence(
    values: np.ndarray,
    curves: np.ndarray,
    *,
    name: str = "x",
    maps: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The mean of each φ_k, shape (n, K), as one input takes the given values in all rows."""
    ax = ax or plt.subplots(figsize=(3.6, 2.8))[1]
    shown = range(curves.shape[1]) if maps is None else maps
    for k, label in zip(shown, phi_names(np.asarray(shown)), strict=True):
        style = "o-" if len(values) <= 2 else "-"
        ax.plot(values, curves[:, k], style, color=CLASS_COLORS[k % 10], label=label, ms=4)
    ax.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    ax.set(xlabel=shortened(name, 40), ylabel="mean of $\\phi_k$")
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
    that most is made of on top.
    """
    order = np.argsort(-relevance.sum(axis=1), kind="stable")[:n_most]
    kept: list[int] = order.tolist()
    labels = [shortened(names[i], 32) if names else f"$x_{{{i + 1}}}$" for i in kept]
    n_maps = relevance.shape[1]
    size = (2.4 + 0.34 * n_maps, max(2.2, 1.0 + 0.25 * len(order)))
    ax = ax or plt.subplots(figsize=size)[1]
    image = ax.imshow(relevance[order], cmap="Blues", vmin=0, aspect="auto")
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, label="share of the map's slope")
    ax.set_yticks(np.arange(len(order)), labels)
    ticks = np.arange(0, n_maps, max(1, n_maps // 16))
    ax.set_xticks(ticks, phi_names(ticks))
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax
