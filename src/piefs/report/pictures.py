"""The pictures of a run, one list of them: PNG in its folder, SVG on its page."""

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

from piefs.core.model import Model
from piefs.data.files import write_with
from piefs.report import plot
from piefs.report.evidence import Document
from piefs.report.plot.style import INK, phi_name
from piefs.report.rows import unpack
from piefs.training.evaluation import needs_jax

ON_PAGE: Any = {"svg.fonttype": "none", "savefig.transparent": True, "axes.facecolor": "none"}
NO_METADATA: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}
COLUMN_INCHES, WIDE_POINTS = 3.8, 330  # a column of the page, and what needs two of them
MAX_IMAGES, N_LEADING = 8, 4

History = Sequence[dict[str, float]]
Section = dict[str, Callable[[], Axes]]
"""Pictures by name: functions that draw them into new axes."""


def pictures(
    evidence: Document, metrics: Document, history: History, estimator: Any
) -> dict[str, Section]:
    """All pictures of a run by section; some sections may be empty."""
    return {
        "rows": of_rows(evidence),
        "plane": of_plane(evidence, estimator),
        "relevance": of_relevance(evidence, estimator.model_),
        "dependence": of_dependence(evidence),
        "coordinates": of_coordinates(evidence, metrics),
        "predictions": of_predictions(evidence),
        "training": of_training(history, metrics["config"]),
    }


def write_pngs(folder: Path, sections: dict[str, Section]) -> None:
    """Write all pictures of a run to `folder`, each atomically."""
    for section in sections.values():
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
    width = float(svg.partition('width="')[2].partition("pt")[0])
    kind = "wide" if width > WIDE_POINTS else "narrow"
    svg = svg.replace("<svg ", f'<svg role="img" class="{kind}" aria-label="{name}" ', 1)
    return svg.replace(INK, "currentColor")


def of_rows(evidence: Document) -> Section:
    """The first two coordinates of held-out rows."""
    data = evidence["data"]
    phi, truth, split = (unpack(evidence["rows"][name]) for name in ("phi", "truth", "split"))
    if phi.shape[1] < 2:
        return {}
    held_out, names = split > 0, data["class_names"]
    options = {"class_names": names, "label": data["target"], "with_key": len(names) != 1}
    scatter = partial(plot.coordinate_scatter, phi[held_out], truth[held_out], **options)
    return {"coordinates": scatter}


def of_plane(evidence: Document, estimator: Any) -> Section:
    """The leading maps and the prediction over the plane, if the inputs are two."""
    if evidence["plane"] is None:
        return {}
    data = evidence["data"]
    x, y = (unpack(evidence["plane"][name]) for name in "xy")
    is_number = y.dtype.kind == "f"
    classes = None if is_number or len(data["class_names"]) < 2 else y
    first, second = map(plot.shortened, data["feature_names"])

    def heatmap(*arguments: Any, **options: Any) -> Axes:
        ax = plot.plane_heatmap(*arguments, **options)
        ax.set(xlabel=first, ylabel=second)
        return ax

    made = Section()
    phi = estimator.transform(plot.grid_of(x)[0])  # all maps at once, on the one grid
    for k, values in enumerate(phi.T[:N_LEADING]):
        made[f"map-{k + 1}"] = partial(
            heatmap, lambda _, values=values: values, x, classes, title=phi_name(k)
        )
    if hasattr(estimator, "decision_function") and len(data["class_names"]) == 2:
        options: Any = {"contour": True, "title": "margin"}
        made["margin"] = partial(heatmap, estimator.decision_function, x, classes, **options)
    elif hasattr(estimator, "predict") and is_number:
        options = {"label": data["target"], "title": "prediction"}
        made["prediction"] = partial(heatmap, estimator.predict, x, y, **options)
    return made


def of_relevance(evidence: Document, model: Model) -> Section:
    """Which inputs the maps, and the metric, use."""
    data, relevance = evidence["data"], evidence["relevance"]
    shares, names = unpack(relevance["by_map"]).astype(float), data["feature_names"]
    image: Any = tuple(data["image_shape"] or ())
    made: Section = {"relevance": partial(plot.relevance_by_map, shares, names)}
    if image:
        made = {
            f"relevance-{k + 1}": partial(plot.relevance_image, share, image, title=phi_name(k))
            for k, share in enumerate(shares.T[:MAX_IMAGES])
        }
    if relevance["metric"] is not None:
        of_metric = unpack(relevance["metric"]).astype(float)
        draw = plot.relevance_image if image else plot.relevance_bars
        name, said = ("metric", "relevance") if needs_jax(model) else ("rates", "share of Σλ")
        made[name] = partial(draw, of_metric, image or names, label=said)
    return made


def of_dependence(evidence: Document) -> Section:
    """How the leading maps change with each of the inputs that matter most."""
    curves = evidence["dependence"]
    reach = max((np.abs(curve["curves"]).max() for curve in curves), default=1.0)

    def one_input(curve: Document) -> Axes:
        values, means = (np.array(curve[name]) for name in ("values", "curves"))
        ax = plot.partial_dependence(values, means, name=curve["name"])
        ax.set_ylim(-1.1 * reach, 1.4 * reach)  # room for the legend
        ax.legend(fontsize=8, ncols=4, loc="upper center")
        return ax

    return {f"dependence-{i + 1}": partial(one_input, curve) for i, curve in enumerate(curves)}


def of_coordinates(evidence: Document, metrics: Document) -> Section:
    """How useful, smooth and orthonormal the maps are."""
    by_maps, made = evidence["by_maps"], Section()
    if by_maps is not None and len(by_maps["kept"]) > 1:
        scores = partial(plot.score_by_maps, by_maps["kept"], by_maps["scores"])
        made["score-by-maps"] = partial(scores, label=by_maps["label"])
    made["energies"] = partial(plot.energies, metrics["energies"])
    made["gram"] = partial(plot.gram_matrix, unpack(evidence["gram"]["validation"]).astype(float))
    return made


def of_predictions(evidence: Document) -> Section:
    """How the predictions compare with the truth on test rows."""
    judged, data = evidence["judged"].get("test"), evidence["data"]
    if judged is None:
        return {}
    if "confusion" not in judged:
        pairs, label = [np.array(judged[name]) for name in ("truth", "predicted")], data["target"]
        return {
            "predictions": partial(plot.predictions, *pairs, label=label),
            "residuals": partial(plot.residuals, *pairs, label=label),
        }
    bins = (np.array(judged["bins"][name]) for name in ("confidence", "accuracy", "counts"))
    return {
        "confusion": partial(
            plot.confusion_matrix, np.array(judged["confusion"]), data["class_names"]
        ),
        "reliability": partial(plot.reliability, *bins),
    }


def of_training(history: History, config: Document) -> Section:
    """The curves of the training; none of a solver that takes no steps."""
    if not history:
        return {}
    solver, curves = config.get("solver") or config["schedule"], partial(plot.history, history)
    made: Section = {"losses": curves}
    for what in ("accuracy", "r2"):
        if f"validation_{what}" in history[-1]:
            made["validation"] = partial(curves, what)
    made["gram-history"] = partial(curves, "gram")
    if solver == "sequential":  # the other solvers keep the weights constant
        made["weights"] = partial(curves, "weights")
    return made
