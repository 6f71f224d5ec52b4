"""The pictures of a page, drawn by `piefs.plot`, as SVG whose text follows the page's colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from piefs import plot
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
MAX_IMAGES = 8
NOTHING: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}


@dataclass(frozen=True)
class Picture:
    """A picture as HTML can hold it, and what it shows."""

    name: str
    svg: str
    caption: str
    wide: bool = False

    @property
    def html(self) -> str:
        """The picture with its caption."""
        made = figure(self.svg, self.caption, name=self.name)
        return made.replace("<figure", "<figure class=wide", 1) if self.wide else made


def draw(name: str, make: Callable[[], Any], caption: str, *, wide: bool = False) -> Picture:
    """A picture of the axes that `make` draws."""
    with mpl.rc_context(LOOK), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of glyphs: a browser has fonts of its own
        axes = make()
        svg = as_svg(axes.figure, name)
        plt.close(axes.figure)
    return Picture(name, svg, caption, wide)


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
    return [*made, _gram(evidence)]


def _gram(evidence: dict[str, Any]) -> Picture:
    c = unpack(evidence["gram"]["validation"]).astype(float)

    def make() -> Any:
        axes = plot.panels(2, width=4.0, height=3.4)
        plot.gram_matrix(c, ax=axes[0])
        plot.gram_matrix(c, ax=axes[1], residual=True)
        return axes[0]

    caption = (
        "The Gram matrix of the coordinates on validation rows, and what it lacks to the identity: "
        "in a perfect model each map has unit size and none repeats another."
    )
    return draw("gram", make, caption, wide=True)


def of_training(history: Sequence[dict[str, float]], schedule: str) -> list[Picture]:
    """The curves of the training."""
    scores = {"validation_accuracy": plot.accuracy_history, "validation_r2": plot.r2_history}
    curves: list[tuple[str, Any, str]] = [
        (
            "losses",
            plot.loss_history,
            "What training minimises, and the same loss on validation rows.",
        )
    ]
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
    """Which inputs matter, and how the leading maps move with them."""
    data, relevance = evidence["data"], evidence["relevance"]
    shares, names = unpack(relevance["by_map"]).astype(float), data["feature_names"]
    shape = data["image_shape"]
    made = [_pixels(shares, tuple(shape)) if shape else _heatmap(shares, names)]
    if relevance["metric"] is not None:
        of_metric = unpack(relevance["metric"]).astype(float)
        made.append(_metric(of_metric, names, shape))
    if evidence["dependence"]:
        made.append(_dependence(evidence["dependence"]))
    return made


def _heatmap(shares: np.ndarray, names: Sequence[str]) -> Picture:
    caption = (
        "Which inputs each map uses: the share of its mean squared slope, each input in units of "
        "its standard deviation."
    )
    return draw("relevance", lambda: plot.relevance_by_map(shares, names), caption)


def _pixels(shares: np.ndarray, shape: tuple[int, int]) -> Picture:
    def make() -> Any:
        n = min(MAX_IMAGES, shares.shape[1])
        drawn, axes = plt.subplots(
            -(-n // 4), min(n, 4), figsize=(2.3 * min(n, 4), 2.1 * -(-n // 4)), squeeze=False
        )
        drawn.set_layout_engine("constrained")
        for k, ax in enumerate(axes.flat):
            if k < n:
                ax.imshow(shares[:, k].reshape(shape), cmap="magma", vmin=0)
                ax.set_title(f"$\\phi_{{{k + 1}}}$")
            ax.set_axis_off()
        return axes.flat[0]

    caption = "Which pixels each of the leading maps uses: bright where its slope is large."
    return draw("relevance", make, caption, wide=True)


def _metric(of_metric: np.ndarray, names: Sequence[str], shape: Any) -> Picture:
    def make() -> Any:
        if shape:
            return plot.relevance_image(of_metric, tuple(shape))
        return plot.relevance_bars(of_metric, [plot.shortened(name) for name in names])

    return draw("metric", make, "Where the learned metric lets maps vary cheaply.")


def _dependence(curves: Sequence[dict[str, Any]]) -> Picture:
    def make() -> Any:
        n_across = min(3, len(curves))
        n_down = -(-len(curves) // n_across)
        size = (3.3 * n_across, 2.5 * n_down + 0.3)
        drawn, axes = plt.subplots(n_down, n_across, figsize=size, squeeze=False, sharey=True)
        drawn.set_layout_engine("constrained")
        for ax in axes.flat[len(curves) :]:
            ax.set_axis_off()
        for ax, curve in zip(axes.flat, curves, strict=False):
            values, means = np.array(curve["values"]), np.array(curve["curves"])
            plot.partial_dependence(values, means, name=curve["name"], ax=ax)
        for ax in axes[:, 1:].flat:
            ax.set_ylabel("")
        axes.flat[0].legend(fontsize=8, ncols=2)
        return axes.flat[0]

    caption = (
        "How the leading maps move, on average, as one input changes and all others stay as they "
        "were observed."
    )
    return draw("dependence", make, caption, wide=True)


def of_plane(estimator: Any, evidence: dict[str, Any]) -> list[Picture]:
    """The leading maps over the plane, where the inputs are two."""
    if evidence["plane"] is None:
        return []
    data = evidence["data"]
    x, y = unpack(evidence["plane"]["x"]), unpack(evidence["plane"]["y"])
    maps = range(min(4, estimator.config_.n_components))
    classes = None if y.dtype.kind == "f" or len(data["class_names"]) < 2 else y

    def make() -> Any:
        drawn, axes = plt.subplots(
            -(-len(maps) // 2),
            min(2, len(maps)),
            figsize=(8, 3.2 * -(-len(maps) // 2)),
            squeeze=False,
        )
        drawn.set_layout_engine("constrained")
        for ax in axes.flat[len(maps) :]:
            ax.set_axis_off()
        used = list(axes.flat)[: len(maps)]
        plot.plane_maps(estimator.transform, x, classes, maps=maps, axes=used)
        _name_axes(used, data["feature_names"])
        return axes.flat[0]

    made = [draw("plane", make, "The leading maps over the plane of the two inputs.", wide=True)]
    if hasattr(estimator, "decision_function") and len(data["class_names"]) == 2:
        made.append(_margin(estimator, x, y, data))
    return made


def _margin(estimator: Any, x: np.ndarray, y: np.ndarray, data: dict[str, Any]) -> Picture:
    def make() -> Any:
        ax = plot.plane_heatmap(estimator.decision_function, x, y, contour=True)
        _name_axes([ax], data["feature_names"])
        return ax

    return draw("margin", make, "The margin of the readout; the line is where classes change.")


def _name_axes(axes: Sequence[Any], names: Sequence[str]) -> None:
    for ax in axes:
        ax.set(xlabel=plot.shortened(names[0]), ylabel=plot.shortened(names[1]))


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
