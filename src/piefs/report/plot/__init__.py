"""Figures as functions: each draws into given or new matplotlib axes and returns them.

`plane_*` functions need two-dimensional inputs; the others work for any data. Names of columns and
classes are shown literally: a `$` in one opens no formula.
"""

# ruff: noqa: E402
from piefs.data.files import optional

optional("matplotlib", "piefs.plot")

from piefs.report.plot.coordinates import (
    coordinate_scatter,
    energies,
    gram_matrix,
    partial_dependence,
    relevance_bars,
    relevance_by_map,
    relevance_image,
    score_by_maps,
)
from piefs.report.plot.plane import grid_of, plane_heatmap, plane_maps, plane_metric
from piefs.report.plot.predictions import (
    confusion_matrix,
    history,
    predictions,
    reliability,
    residuals,
)
from piefs.report.plot.style import CLASS_COLORS, NUMBER_COLORS, STYLE, panels, shortened

__all__ = [
    "CLASS_COLORS", "NUMBER_COLORS", "STYLE", "confusion_matrix", "coordinate_scatter", "energies",
    "gram_matrix", "grid_of", "history", "panels", "partial_dependence", "plane_heatmap",
    "plane_maps", "plane_metric", "predictions", "relevance_bars",
    "relevance_by_map", "relevance_image", "reliability", "residuals", "score_by_maps", "shortened",
]  # fmt: skip
