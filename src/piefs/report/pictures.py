"""The pictures of a run, one list of them: PNG in its folder, SVG on its page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Picture:
    """A picture by name: the function that draws it, and what it shows."""

    name: str
    draw: Callable[[], Axes]
    caption: str = ""


def pictures(
    evidence: Document, metrics: Document, history: Sequence[dict[str, float]], estimator: Any
) -> dict[str, list[Picture]]:
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
        for picture in section:
            with mpl.rc_context(plot.STYLE):
                figure: Any = picture.draw().figure
                write_with(folder / f"{picture.name}.png", figure.savefig)
            plt.close(figure)


def as_svg(picture: Picture) -> str:
    """A picture as inline SVG: text stays text, and takes the colour of the page's text."""
    buffer = io.StringIO()
    look = plot.STYLE | ON_PAGE | {"svg.hashsalt": picture.name}
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # missing glyphs: a browser has its own fonts
        figure: Any = picture.draw().figure
        width, height = figure.get_size_inches()
        shrink = np.clip(COLUMN_INCHES / width, 0.75, 1.0)  # text keeps its size
        figure.set_size_inches(shrink * width, shrink * height)
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    plt.close(figure)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # ids must be unique on the page
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{picture.name}" ', 1)
    return svg.replace(INK, "currentColor")


# --- rows and inputs -----------------------------------------------------------------------------


def of_rows(evidence: Document) -> list[Picture]:
    """The first two coordinates of held-out rows."""
    rows, data = evidence["rows"], evidence["data"]
    phi, truth = unpack(rows["phi"]), unpack(rows["truth"])
    if phi.shape[1] < 2:
        return []
    held_out = unpack(rows["split"]) > 0
    options = {"class_names": data["class_names"], "label": data["target"]}
    if len(data["class_names"]) == 1:
        options["with_key"] = False
    draw = partial(plot.coordinate_scatter, phi[held_out], truth[held_out], **options)
    return [Picture("coordinates", draw)]


def of_plane(evidence: Document, estimator: Any) -> list[Picture]:
    """The leading maps and the prediction over the plane, if the inputs are two."""
    if evidence["plane"] is None:
        return []
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
    made = [Picture(f"map-{k + 1}", partial(one_map, k)) for k in range(n_maps)]
    if hasattr(estimator, "decision_function") and len(data["class_names"]) == 2:
        margin = partial(heatmap, estimator.decision_function, contour=True, title="margin")
        caption = "The margin of the readout; the black line is the decision boundary."
        made.append(Picture("margin", margin, caption))
    elif hasattr(estimator, "predict") and y.dtype.kind == "f":
        surface = partial(plot.plane_prediction, estimator.predict, x, y, label=data["target"])
        caption = "The prediction; dots are true values on validation rows."
        made.append(Picture("prediction", partial(named, surface), caption))
    return made


def of_relevance(evidence: Document) -> list[Picture]:
    """Which inputs the maps, and the metric, use."""
    data, relevance = evidence["data"], evidence["relevance"]
    shares, names = unpack(relevance["by_map"]).astype(float), data["feature_names"]
    image = tuple(data["image_shape"] or ())
    if image:
        made = [_pixels(shares[:, k], image, k) for k in range(min(MAX_IMAGES, shares.shape[1]))]
    else:
        caption = (
            "The share of each map's mean squared slope, per unit of each input as the maps see "
            "it: its standard deviation if inputs are scaled."
        )
        made = [Picture("relevance", partial(plot.relevance_by_map, shares, names), caption)]
    if relevance["metric"] is not None:
        of_metric = unpack(relevance["metric"]).astype(float)
        draw = partial(plot.relevance_bars, of_metric, names)
        if image:
            draw = partial(plot.relevance_image, of_metric, image)
        caption = "Inputs along which the learned metric makes slopes cheap."
        made.append(Picture("metric", draw, caption))
    return made


def _pixels(shares: np.ndarray, shape: Any, k: int) -> Picture:
    draw = partial(plot.relevance_image, shares, shape, title=f"$\\phi_{{{k + 1}}}$")
    return Picture(f"relevance-{k + 1}", draw)


def of_dependence(evidence: Document) -> list[Picture]:
    """How the leading maps change with each of the inputs that matter most."""
    curves = evidence["dependence"]
    reach = max((np.abs(curve["curves"]).max() for curve in curves), default=1.0)

    def one_input(curve: Document) -> Axes:
        values, means = np.array(curve["values"]), np.array(curve["curves"])
        ax = plot.partial_dependence(values, means, name=curve["name"])
        ax.set_ylim(-1.1 * reach, 1.4 * reach)  # room for the legend
        ax.legend(fontsize=8, ncols=4, loc="upper center")
        return ax

    return [
        Picture(f"dependence-{i + 1}", partial(one_input, curve)) for i, curve in enumerate(curves)
    ]


# --- coordinates, predictions, training ----------------------------------------------------------


def of_coordinates(evidence: Document, metrics: Document) -> list[Picture]:
    """How useful, smooth and orthonormal the maps are."""
    made, by_maps = [], evidence["by_maps"]
    if by_maps is not None and len(by_maps["kept"]) > 1:
        draw = partial(
            plot.score_by_maps, by_maps["kept"], by_maps["scores"], label=by_maps["label"]
        )
        caption = (
            "A linear probe on the first maps only. Maps beyond the point at which the curve turns "
            "flat add nothing to the prediction."
        )
        made.append(Picture("score-by-maps", draw, caption))
    c = unpack(evidence["gram"]["validation"]).astype(float)
    return [
        *made,
        Picture(
            "energies",
            partial(plot.energies, metrics["energies"]),
            "The Dirichlet energy measures how fast a map varies: small is smooth.",
        ),
        Picture(
            "gram",
            partial(plot.gram_matrix, c),
            "The Gram matrix on validation rows. It is the identity if the maps are orthonormal.",
        ),
        Picture(
            "gram-residual",
            partial(plot.gram_matrix, c, residual=True),
            "Its difference from the identity, on a colour scale of its own.",
        ),
    ]


def of_predictions(evidence: Document) -> list[Picture]:
    """How the predictions compare with the truth on test rows."""
    judged, data = evidence["judged"].get("test"), evidence["data"]
    if judged is None:
        return []
    if "confusion" not in judged:
        y, predicted = np.array(judged["truth"]), np.array(judged["predicted"])
        return [
            Picture(
                "predictions",
                partial(plot.predictions, y, predicted, label=data["target"]),
                "Predicted against true values of the test rows.",
            ),
            Picture(
                "residuals",
                partial(plot.residuals, y, predicted, label=data["target"]),
                "Residuals of the test rows. A bend or a funnel is structure that the model "
                "missed.",
            ),
        ]
    counts = np.array(judged["confusion"])
    bins = (np.array(judged["bins"][name]) for name in ("confidence", "accuracy", "counts"))
    return [
        Picture(
            "confusion",
            partial(plot.confusion_matrix, counts, data["class_names"]),
            "True against predicted classes of the test rows.",
        ),
        Picture(
            "reliability",
            partial(plot.reliability, *bins),
            "Test rows by confidence. On the diagonal, 80 % of the rows predicted with 80 % are "
            "correct; below it the model is overconfident. Larger dots stand for more rows.",
        ),
    ]


def of_training(history: Sequence[dict[str, float]], solver: str) -> list[Picture]:
    """The curves of the training."""
    if not history:
        return []
    losses: Any = plot.loss_history
    what = "The training loss, and the same loss on validation rows."
    if solver == "spectral":
        losses = partial(plot.loss_history, target="distance to the graph")
        what = "The training loss: the distance of the maps from the graph's eigenmaps."
    scores = {"validation_accuracy": plot.accuracy_history, "validation_r2": plot.r2_history}
    curves = [("losses", losses, what)]
    curves += [
        ("validation", function, "The score on validation rows during training.")
        for name, function in scores.items()
        if name in history[-1]
    ]
    residual = "How far a batch's coordinates are from orthonormal."
    curves.append(("gram-history", plot.gram_history, residual))
    if solver == "sequential":  # the other solvers keep the weights constant
        weights = "The weights of the three losses: orthogonality first."
        curves.append(("weights", plot.weight_history, weights))
    return [Picture(name, partial(draw, history), caption) for name, draw, caption in curves]
