"""The palette, the sizes and the small things that all figures share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

CLASS_COLORS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"),
    *("#56b4e9", "#7a4b94", "#4d4d4d", "#8c6d31", "#b3de69"),
)
NUMBER_COLORS, SIGNED_COLORS, SHARE_COLORS = "viridis", "RdBu_r", "Blues"
"""Colour maps of numbers, of numbers around zero, and of shares from none to all."""

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
INK, GUIDE, FAINT = "#1c2733", "0.6", "0.9"
"""Text; lines that a figure is read against; lines that only mark a place."""

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
    "svg.hashsalt": "piefs",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}


def panels(n: int, *, width: float, height: float) -> Sequence[Axes]:
    """A row of n axes, spaced so that labels do not collide."""
    size = (width * n, height)
    return plt.subplots(1, n, figsize=size, squeeze=False, layout="constrained")[1][0]


def class_color(label: int) -> str:
    """The colour of a class; beyond the palette's length colours repeat."""
    return CLASS_COLORS[label % len(CLASS_COLORS)]


def number_colors(y: np.ndarray) -> dict[str, Any]:
    """Colours for numbers, from the first to the last percentile: outliers would fade the rest."""
    low, high = np.quantile(y, [0.01, 0.99])
    return {"cmap": NUMBER_COLORS, "norm": Normalize(low, high)}


def color_bar(ax: Axes, image: Any, label: str = "", *, extend: str = "neither") -> None:
    """A colour bar as high as the axes, with a literal label."""
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, extend=extend, label=literal(label))


def literal(name: object) -> str:
    """A name that comes from data, as matplotlib shows it letter by letter: $ opens no formula."""
    return str(name).replace("$", r"\$")


def shortened(name: object, most: int = 24) -> str:
    """A name that fits beside an axis, literally: the middle of a long one is left out."""
    name = str(name)
    end = most - most // 2 - 1
    return literal(name if len(name) <= most else f"{name[: most // 2]}…{name[-end:]}")


def phi_name(k: int) -> str:
    """φ₁, φ₂, … for maps counted from zero: plain text, since formulas take long to set."""
    return "φ" + str(k + 1).translate(SUBSCRIPTS)


def without_frame(ax: Axes) -> Axes:
    """The axes of a matrix or an image, whose colours are frame enough."""
    ax.spines[:].set_visible(False)
    return ax
