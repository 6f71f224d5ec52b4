"""The pictures of a run, one list of them: PNG in its folder, SVG on its page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from piefs.data.files import write_with
from piefs.report import plot
from piefs.report.plot.style import INK
from piefs.report.rows import unpack

ON_PAGE: Any = {"svg.fonttype": "none", "savefig.transparent": True, "axes.facecolor": "none"}
NO_METADATA: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}
COLUMN_INCHES = 3.8  # of the page
MAX_IMAGES, N_LEADING, PLANE_POINTS = 8, 4, 300

Document = dict[str, Any]
Section = dict[str, Callable[[], Axes]]
"""Pictures by name: functions that draw them into new axes."""


def pictures(
    evidence: Document, metrics: Document, history: Sequence[dict[str, float]], estimator: Any
) -> dict[str, Section]:
    """All pictures of a run by section; some sections may be empty.

    The page shows all sections but `rows`: it has a scatter of its own that one can explore.
    """
    config = metrics["config"]
    return {
        "rows": of_rows(evidence),
        "plane": of_plane(evidence, estimator),
        "relevance": of_relevance(evidence),
        "dependence": of_dependence(evidence),
        "coordinates": of_coordinates(evidence, metrics),
        "predictions": of_predictions(evidence),
        "training": of_training(history, config.get("solver") or config["schedule"]),
    }


def write_pngs(
    folder: Path,
    evidence: Document,
    metrics: Document,
    history: Sequence[dict[str, float]],
    estimator: Any,
) -> None:
    """Write all pictures of a run to `folder`, each atomically."""
    for section in pictures(evidence, metrics, history, estimator).values():
        for name, draw in section.items():
            with mpl.rc_context(plot.STYLE):
                figure: Any = draw().figure
                write_with(folder / f"{name}.png", figure.savefig)
            plt.close(figure)


def as_svg(name: str, draw: Callable[[], Axes]) -> str:
    """A picture as inline SVG: text stays text, and takes the colour of the page's text."""
    buffer = io.StringIO()
    look = plot.STYLE | ON_PAGE | {"svg.hashsalt": name}
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # missing glyphs: a browser has its own fonts
        figure: Any = draw().figure
        width, height = figure.get_size_inches()
        shrink = np.clip(COLUMN_INCHES / width, 0.75, 1.0)  # text keeps its size
        figure.set_size_inches(shrink * width, shrink * height)
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    plt.close(figure)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # ids must be unique on the page
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)
    return svg.replace(INK, "currentColor")


def of_rows(evidence: Document) -> Section:
    """The first two coordinates of held-out rows."""
    rows, data = evidence["rows"], evidence["data"]
    phi, truth = unpack(rows["phi"]), unpack(rows["truth"])
    if phi.shape[1] < 2:
        return {}
    held_out = unpack(rows["split"]) > 0
    options = {"class_names": data["class_names"], "label": data["target"]}
    if len(data["class_names"]) == 1:
        options["with_key"] = False
    scatter = partial(plot.coordinate_scatter, phi[held_out], truth[held_out], **options)
    return {"coordinates": scatter}


def of_plane(evidence: Document, estimator: Any) -> Section:
    """The leading maps and the prediction over the plane, if the inputs are two."""
    if evidence["plane"] is None:
        return {}
    data = evidence["data"]
    x, y = (unpack(evidence["plane"][name])[:PLANE_POINTS] for name in "xy")
    first, second = (plot.shortened(name) for name in data["feature_names"])
    classes = None if y.dtype.kind == "f" or len(data["class_names"]) < 2 else y

    def named(draw: Callable[[], Axes]) -> Axes:
        ax = draw()
        ax.set(xlabel=first, ylabel=second)
        return ax

    def heatmap(function: Callable[[np.ndarray], np.ndarray], **options: Any) -> Axes:
        return named(lambda: plot.plane_heatmap(function, x, classes, **options))

    def one_map(k: int) -> Axes:
        return heatmap(lambda rows: estimator.transform(rows)[:, k], title=f"$\\phi_{{{k + 1}}}$")

    n_maps = min(N_LEADING, unpack(evidence["rows"]["phi"]).shape[1])
    made: Section = {f"map-{k + 1}": partial(one_map, k) for k in range(n_maps)}
    if hasattr(estimator, "decision_function") and len(data["class_names"]) == 2:
        options: Any = {"contour": True, "title": "margin"}
        made["margin"] = partial(heatmap, estimator.decision_function, **options)
    elif hasattr(estimator, "predict") and y.dtype.kind == "f":
        options = {"label": data["target"], "title": "prediction"}
        surface = partial(plot.plane_prediction, estimator.predict, x, y, **options)
        made["prediction"] = partial(named, surface)
    return made


def of_relevance(evidence: Document) -> Section:
    """Which inputs the maps, and the metric, use."""
    data, relevance = evidence["data"], evidence["relevance"]
    shares, names = unpack(relevance["by_map"]).astype(float), data["feature_names"]
    image: Any = tuple(data["image_shape"] or ())
    made: Section = {"relevance": partial(plot.relevance_by_map, shares, names)}
    if image:
        made = {
            f"relevance-{k + 1}": partial(
                plot.relevance_image, shares[:, k], image, title=f"$\\phi_{{{k + 1}}}$"
            )
            for k in range(min(MAX_IMAGES, shares.shape[1]))
        }
    if relevance["metric"] is not None:
        of_metric = unpack(relevance["metric"]).astype(float)
        made["metric"] = partial(plot.relevance_bars, of_metric, names)
        if image:
            made["metric"] = partial(plot.relevance_image, of_metric, image)
    return made


def of_dependence(evidence: Document) -> Section:
    """How the leading maps change with each of the inputs that matter most."""
    curves = evidence["dependence"]
    reach = max((np.abs(curve["curves"]).max() for curve in curves), default=1.0)

    def one_input(curve: Document) -> Axes:
        values, means = np.array(curve["values"]), np.array(curve["curves"])
        ax = plot.partial_dependence(values, means, name=curve["name"])
        ax.set_ylim(-1.1 * reach, 1.4 * reach)  # room for the legend
        ax.legend(fontsize=8, ncols=4, loc="upper center")
        return ax

    return {f"dependence-{i + 1}": partial(one_input, curve) for i, curve in enumerate(curves)}


def of_coordinates(evidence: Document, metrics: Document) -> Section:
    """How useful, smooth and orthonormal the maps are."""
    made: Section = {}
    by_maps = evidence["by_maps"]
    if by_maps is not None and len(by_maps["kept"]) > 1:
        kept, scores, label = (by_maps[name] for name in ("kept", "scores", "label"))
        made["score-by-maps"] = partial(plot.score_by_maps, kept, scores, label=label)
    c = unpack(evidence["gram"]["validation"]).astype(float)
    return made | {
        "energies": partial(plot.energies, metrics["energies"]),
        "gram": partial(plot.gram_matrix, c),
        "gram-residual": partial(plot.gram_matrix, c, residual=True),
    }


def of_predictions(evidence: Document) -> Section:
    """How the predictions compare with the truth on test rows."""
    judged, data = evidence["judged"].get("test"), evidence["data"]
    if judged is None:
        return {}
    if "confusion" not in judged:
        y, predicted = np.array(judged["truth"]), np.array(judged["predicted"])
        return {
            "predictions": partial(plot.predictions, y, predicted, label=data["target"]),
            "residuals": partial(plot.residuals, y, predicted, label=data["target"]),
        }
    counts = np.array(judged["confusion"])
    bins = (np.array(judged["bins"][name]) for name in ("confidence", "accuracy", "counts"))
    return {
        "confusion": partial(plot.confusion_matrix, counts, data["class_names"]),
        "reliability": partial(plot.reliability, *bins),
    }


def of_training(history: Sequence[dict[str, float]], solver: str) -> Section:
    """The curves of the training."""
    if not history:
        return {}
    curves: dict[str, Any] = {"losses": plot.loss_history}
    if solver == "spectral":
        curves = {"losses-spectral": partial(plot.loss_history, target="distance to the graph")}
    if "validation_accuracy" in history[-1]:
        curves["validation"] = plot.accuracy_history
    elif "validation_r2" in history[-1]:
        curves["validation"] = plot.r2_history
    curves["gram-history"] = plot.gram_history
    if solver == "sequential":  # the other solvers keep the weights constant
        curves["weights"] = plot.weight_history
    return {name: partial(draw, history) for name, draw in curves.items()}
