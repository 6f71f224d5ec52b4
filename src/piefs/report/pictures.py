"""The pictures of a page, drawn by `report.plot`, as SVG whose text follows its colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from piefs.report import plot
from piefs.report.html import figure
from piefs.report.packing import unpack

INK = "#1c2733"  # stands for the page's text colour, whichever that is
LOOK: Any = plot.STYLE | {
    "svg.fonttype": "none",
    "svg.hashsalt": "piefs",
    "savefig.transparent": True,
    "axes.facecolor": "none",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}
MAX_IMAGES, N_LEADING, PLANE_POINTS = 8, 4, 300
NOTHING: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}


@dataclass(frozen=True)
class Picture:
    """A picture as HTML can hold it, and what it shows."""

    name: str
    svg: str
    caption: str

    @property
    def html(self) -> str:
        """The picture with its caption."""
        return figure(self.svg, self.caption, name=self.name)


def draw(name: str, make: Callable[[], Any], caption: str = "") -> Picture:
    """A picture of the axes that `make` draws."""
    with mpl.rc_context(LOOK), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of glyphs: a browser has fonts of its own
        axes = make()
        svg = as_svg(axes.figure, name)
        plt.close(axes.figure)
    return Picture(name, svg, caption)


def as_svg(drawn: Any, name: str) -> str:
    """A figure as inline SVG: text is text, what is ink takes the colour of the page's text."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        drawn.savefig(buffer, format="svg", metadata=NOTHING)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # names that other pictures have too
    return svg.replace(INK, "currentColor").replace(
        "<svg ", f'<svg role="img" aria-label="{name}" ', 1
    )


def of_coordinates(evidence: dict[str, Any], metrics: dict[str, Any]) -> list[Picture]:
    """How useful, smooth and orthonormal the maps are."""
    made = []
    by_maps = evidence["by_maps"]
    if by_maps is not None and len(by_maps["kept"]) > 1:
        made.append(
            draw(
                "score-by-maps",
                lambda: plot.score_by_maps(
                    by_maps["kept"], by_maps["scores"], label=by_maps["label"]
                ),
                "A linear probe on the first maps only: where the curve is flat, the further maps "
                "add nothing to the prediction.",
            )
        )
    made.append(
        draw(
            "energies",
            lambda: plot.energies(metrics["energies"]),
            "Dirichlet energy: how fast a map varies. Small is smooth.",
        )
    )
    c = unpack(evidence["gram"]["validation"]).astype(float)
    return [
        *made,
        draw(
            "gram",
            lambda: plot.gram_matrix(c),
            "The Gram matrix on validation rows: in a perfect model each map has unit size and "
            "none repeats another.",
        ),
        draw(
            "gram-residual",
            lambda: plot.gram_matrix(c, residual=True),
            "What it lacks to the identity, in colours of its own range.",
        ),
    ]


def of_training(history: Sequence[dict[str, float]], schedule: str) -> list[Picture]:
    """The curves of the training."""
    scores = {"validation_accuracy": plot.accuracy_history, "validation_r2": plot.r2_history}
    losses, words = (
        plot.loss_history,
        "What training minimises, and the same loss on validation rows.",
    )
    if schedule == "spectral":
        losses = partial(plot.loss_history, target="distance to the graph")
        words = "What training minimises: how far the maps are from the graph's eigenmaps."
    curves: list[tuple[str, Any, str]] = [("losses", losses, words)]
    curves += [
        ("validation", function, "The score on validation rows while training went on.")
        for name, function in scores.items()
        if name in history[-1]
    ]
    curves.append(
        ("gram-history", plot.gram_history, "How far a batch's coordinates are from orthonormal.")
    )
    if schedule == "sequential":  # the weights are constants in the others
        curves.append(
            (
                "weights",
                plot.weight_history,
                "The weights of the three losses: orthogonality first.",
            )
        )
    return [
        draw(name, lambda function=function: function(history), caption)
        for name, function, caption in curves
    ]


def of_inputs(evidence: dict[str, Any]) -> list[Picture]:
    """Which inputs the maps, and the metric, make use of."""
    data, relevance = evidence["data"], evidence["relevance"]
    shares, names = unpack(relevance["by_map"]).astype(float), data["feature_names"]
    if data["image_shape"]:
        made = _pixels(shares, data["image_shape"])
    else:
        caption = (
            "The share of each map's mean squared slope, per unit of each input as the maps see "
            "it: its standard deviation where inputs are scaled."
        )
        made = [draw("relevance", lambda: plot.relevance_by_map(shares, names), caption)]
    if relevance["metric"] is not None:
        made.append(_metric(unpack(relevance["metric"]).astype(float), names, data["image_shape"]))
    return made


def _pixels(shares: np.ndarray, shape: Sequence[int]) -> list[Picture]:
    """Each leading map's own picture of the pixels that it uses."""
    height, width = shape
    return [
        draw(
            f"relevance-{k + 1}",
            lambda k=k: plot.relevance_image(
                shares[:, k], (height, width), title=f"$\\phi_{{{k + 1}}}$"
            ),
        )
        for k in range(min(MAX_IMAGES, shares.shape[1]))
    ]


def _metric(of_metric: np.ndarray, names: Sequence[str], shape: Sequence[int] | None) -> Picture:
    def make() -> Any:
        if shape:
            return plot.relevance_image(of_metric, (shape[0], shape[1]))
        return plot.relevance_bars(of_metric, [plot.shortened(name) for name in names])

    return draw("metric", make, "Where the learned metric lets maps vary cheaply.")


def of_dependence(evidence: dict[str, Any]) -> list[Picture]:
    """How the leading maps move with each of the inputs that matter most."""
    curves = evidence["dependence"]
    reach = max((np.abs(curve["curves"]).max() for curve in curves), default=1.0)

    def make(curve: dict[str, Any]) -> Any:
        values, means = np.array(curve["values"]), np.array(curve["curves"])
        ax = plot.partial_dependence(values, means, name=curve["name"])
        ax.set_ylim(-1.1 * reach, 1.4 * reach)  # room for the legend
        ax.legend(fontsize=8, ncols=4, loc="upper center")
        return ax

    return [
        draw(f"dependence-{i + 1}", lambda curve=curve: make(curve))
        for i, curve in enumerate(curves)
    ]


def of_plane(estimator: Any, evidence: dict[str, Any]) -> list[Picture]:
    """The leading maps over the plane, where the inputs are two, and what the readout says."""
    if evidence["plane"] is None:
        return []
    data = evidence["data"]
    x, y = (unpack(evidence["plane"][name])[:PLANE_POINTS] for name in "xy")
    classes = None if y.dtype.kind == "f" or len(data["class_names"]) < 2 else y

    def make(function: Callable[[np.ndarray], np.ndarray], **options: Any) -> Any:
        ax = plot.plane_heatmap(function, x, classes, **options)
        names = [plot.shortened(name) for name in data["feature_names"]]
        ax.set(xlabel=names[0], ylabel=names[1])
        return ax

    def map_over_plane(k: int) -> Any:
        return make(lambda rows: estimator.transform(rows)[:, k], title=f"$\\phi_{{{k + 1}}}$")

    n_maps = min(N_LEADING, estimator.config_.n_components)
    made = [draw(f"plane-{k + 1}", lambda k=k: map_over_plane(k)) for k in range(n_maps)]
    if hasattr(estimator, "decision_function") and len(data["class_names"]) == 2:
        options = {"contour": True, "title": "margin of the readout"}
        made.append(draw("margin", lambda: make(estimator.decision_function, **options)))
    return made


def of_predictions(evidence: dict[str, Any]) -> list[Picture]:
    """Where predictions are right, on test rows."""
    judged, data = evidence["judged"].get("test"), evidence["data"]
    if judged is None:
        return []
    if "confusion" not in judged:
        return _of_numbers(judged, data["target"])
    names, bins = data["class_names"], judged["bins"]
    return [
        draw(
            "confusion",
            lambda: plot.confusion_matrix(np.array(judged["confusion"]), names),
            "True classes of the test rows against predicted ones.",
        ),
        draw(
            "reliability",
            lambda: plot.reliability(*(np.array(bins[name]) for name in BINS)),
            "Test rows by confidence: on the diagonal, of the rows predicted with 80 % four in "
            "five are right. Below it the model is too sure. Dots grow with the number of rows.",
        ),
    ]


BINS = ("confidence", "accuracy", "counts")


def _of_numbers(judged: dict[str, Any], target: str) -> list[Picture]:
    y, predicted = np.array(judged["truth"]), np.array(judged["predicted"])
    return [
        draw(
            "predictions",
            lambda: plot.predictions(y, predicted, label=target),
            "Predicted against true numbers of the test rows.",
        ),
        draw(
            "residuals",
            lambda: plot.residuals(y, predicted, label=target),
            "What the predictions miss. A bend or a funnel is structure that was not learned.",
        ),
    ]
