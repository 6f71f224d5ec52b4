"""Pictures of the tables: mean ranks with the critical difference, and ranks against seconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.tables.methods import METHODS
from lab.tables.ranking import cliques
from piefs.report.plot.style import CLASS_COLORS, GUIDE, INK

COLORS = dict(zip(METHODS, CLASS_COLORS, strict=True))


def rank_diagram(mean_ranks: Mapping[str, float], difference: float) -> Figure:
    """Demšar's diagram: methods hang from an axis of mean ranks; bars join those within the CD."""
    ordered = sorted(mean_ranks, key=mean_ranks.__getitem__)
    bars = cliques(list(mean_ranks.values()), difference)
    half, top = (len(ordered) + 1) // 2, 0.35 + 0.16 * len(bars)
    figure, axis = plt.subplots(figsize=(8.2, 1.5 + 0.3 * half), layout="constrained")
    low, high = 1, len(ordered)
    _scale(axis, low, high, difference)
    for i, (first, last) in enumerate(bars):
        y = -0.2 - 0.16 * i
        axis.plot([first - 0.04, last + 0.04], [y, y], color=INK, lw=4, solid_capstyle="butt")
    for i, name in enumerate(ordered):
        left = i < half
        level = i if left else len(ordered) - 1 - i
        y, x = -top - 0.3 * level, low - 0.3 if left else high + 0.3
        rank, color = mean_ranks[name], COLORS[name]
        axis.plot([rank, rank, x], [0, y, y], color=color, lw=1.4)
        axis.plot(rank, 0, "o", ms=5, color=color, clip_on=False)
        label = (
            f"{METHODS[name].label}  {rank:.2f}" if left else f"{rank:.2f}  {METHODS[name].label}"
        )
        weight = "bold" if name == "piefs" else "normal"
        axis.annotate(
            label,
            (x, y),
            (-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            weight=weight,
        )
    axis.set(xlim=(low - 1.9, high + 1.9), ylim=(-top - 0.3 * half, 0.75))
    return figure


def _scale(axis: Axes, low: int, high: int, difference: float) -> None:
    """The axis of ranks, and the critical difference above it."""
    axis.axis("off")
    axis.plot([low, high], [0, 0], color=INK, lw=1)
    for rank in range(low, high + 1):
        axis.plot([rank, rank], [0, 0.07], color=INK, lw=1)
        axis.text(rank, 0.12, str(rank), ha="center", va="bottom", fontsize=9)
    end = low + difference
    axis.plot([low, end], [0.5, 0.5], "|-", color=GUIDE, lw=1.5, ms=8)
    axis.text(end + 0.1, 0.5, f"critical difference {difference:.2f}", va="center", fontsize=9)


def rank_against_time(mean_ranks: Mapping[str, float], seconds: Mapping[str, float]) -> Figure:
    """The quick and the good are at the lower left."""
    figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for name, x in seconds.items():
        axis.plot(x, mean_ranks[name], "o", ms=8, color=COLORS[name])
        axis.annotate(
            METHODS[name].label,
            (x, mean_ranks[name]),
            (7, 0),
            textcoords="offset points",
            va="center",
            weight="bold" if name == "piefs" else "normal",
        )
    values = np.array(list(seconds.values()))
    axis.set(
        xscale="log",
        xlim=(values.min() / 1.6, values.max() * 4),
        xlabel="median seconds of a fit, two cores",
        ylabel="mean rank (1 is best)",
    )
    for formatted in (axis.xaxis.set_major_formatter, axis.xaxis.set_minor_formatter):
        formatted(lambda seconds, _: f"{seconds:g}")
    axis.grid(alpha=0.3)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a picture and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
