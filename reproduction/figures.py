"""The paper's figures from the records, as PNG and SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from piefs.data import load
from piefs.data.binary import load_npz
from piefs.data.files import reading, write_with
from piefs.report.plot.style import CLASS_COLORS, SIGNED_COLORS, STYLE
from reproduction.cells import ALL_DATASETS, EMBEDDING, MODES, PIEFS, PLANE, Cell
from reproduction.entries import TITLES
from reproduction.published import ACCURACY, GRAM_ERROR
from reproduction.records import Key, Record, Records, remedy, summaries

COLORS: dict[str, str] = dict(zip(ALL_DATASETS, CLASS_COLORS, strict=False))
MARKERS: dict[str, str] = dict(zip(PIEFS, ("o", "s", "^"), strict=True))
N_GRAM = 10

Drawing = Callable[[Records], Figure | None]


def draw_all(records: Records, folder: Path) -> dict[str, Path]:
    """Every figure whose records are there: name → PNG, an SVG beside it."""
    drawn = {}
    with mpl.rc_context(STYLE):
        for name, draw in FIGURES.items():
            figure = draw(records)
            if figure is None:
                continue
            drawn[name] = folder / f"{name}.png"
            write_with(drawn[name], partial(figure.savefig, dpi=140))
            without_date = partial(figure.savefig, metadata={"Date": None})
            write_with(folder / f"{name}.svg", without_date)
    return drawn


# --- maps on the plane -------------------------------------------------------------------------


def _planes(records: Records) -> dict[str, dict[str, np.ndarray]]:
    found = {}
    for dataset in PLANE:
        cell = Cell(dataset, "piefs-off", "supervised", "paper", 0)
        path = records.plane(cell)
        if path.exists():
            with reading(path, remedy(cell)):
                found[dataset] = load_npz(path)
    return found


def _draw_plane(
    records: Records, panels: dict[str, str], *, boundary: bool, points: bool
) -> Figure | None:
    planes = _planes(records)
    if not planes or any(name not in plane for plane in planes.values() for name in panels):
        return None
    size = (3.4 * len(panels), 2.9 * len(planes))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(planes), len(panels), squeeze=False)
    for row, (dataset, plane) in zip(axes, planes.items(), strict=True):
        for axis, (name, label) in zip(row, panels.items(), strict=True):
            _heatmap(figure, axis, plane, name)
            axis.set_title(f"{label}, {TITLES[dataset]}", fontsize=10)
            if boundary:
                axis.contour(plane["x1"], plane["x2"], plane["margin"], [0], colors="k")
            if points:
                _scatter_validation(axis, dataset)
        row[0].set_ylabel("$x_2$")
    for axis in axes[-1]:
        axis.set_xlabel("$x_1$")
    return figure


def _heatmap(figure: Figure, axis: Axes, plane: dict[str, np.ndarray], name: str) -> None:
    values = plane[name]
    limit = float(np.percentile(np.abs(values), 99)) or 1.0
    style: Any = {"cmap": SIGNED_COLORS, "vmin": -limit, "vmax": limit, "rasterized": True}
    mesh = axis.pcolormesh(plane["x1"], plane["x2"], values, **style)
    figure.colorbar(mesh, ax=axis, shrink=0.9)


def _scatter_validation(axis: Axes, dataset: str) -> None:
    part = load(dataset).validation
    for label, color in enumerate(CLASS_COLORS[:2]):
        x = part.x[part.y == label][:250]
        axis.scatter(*x.T, s=8, color=color, edgecolors="white", linewidths=0.35)


def geometry(records: Records) -> Figure | None:
    """φ₂, φ₃ and the classifier's margin over the plane, with the decision boundary."""
    panels = {"phi2": "$\\phi_2$", "phi3": "$\\phi_3$", "margin": "margin"}
    return _draw_plane(records, panels, boundary=True, points=False)


def leading_maps(records: Records) -> Figure | None:
    """φ₁ … φ₃ over the plane, with validation rows."""
    panels = {f"phi{k}": f"$\\phi_{k}$" for k in (1, 2, 3)}
    return _draw_plane(records, panels, boundary=False, points=True)


# --- training ----------------------------------------------------------------------------------


def _off(records: Records) -> dict[str, list[Record]]:
    """The supervised `off` runs with a history, by data set."""
    found = defaultdict(list)
    for record in records:
        cell = record.cell
        wanted = (cell.method, cell.mode, cell.variant) == ("piefs-off", "supervised", "paper")
        if wanted and record.history():
            found[cell.dataset].append(record)
    return {dataset: found[dataset] for dataset in ALL_DATASETS if dataset in found}


def _single_axis() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    return figure, figure.subplots()


def _curves(records: Records, column: str, label: str, scale: float) -> Figure | None:
    """Mean and band of ± one standard deviation over seeds of a column of the histories."""
    runs = _off(records)
    if not runs:
        return None
    figure, axis = _single_axis()
    for dataset, found in runs.items():
        histories = [record.history() for record in found]
        length = min(map(len, histories))
        steps = np.array([row["step"] for row in histories[0][:length]])
        values = scale * np.array([[row[column] for row in h[:length]] for h in histories])
        mean, std = values.mean(axis=0), values.std(axis=0)
        name = f"{TITLES[dataset]} ({len(found)})"
        axis.plot(steps, mean, color=COLORS[dataset], label=name, linewidth=1.4)
        axis.fill_between(steps, mean - std, mean + std, color=COLORS[dataset], alpha=0.2)
    axis.set_xlabel("training steps")
    axis.set_ylabel(label)
    axis.legend(frameon=False, fontsize=9, title="data set (seeds)", title_fontsize=9)
    return figure


def accuracy(records: Records) -> Figure | None:
    """Validation accuracy over training steps."""
    return _curves(records, "validation_accuracy", "validation accuracy, %", 100.0)


def residual(records: Records) -> Figure | None:
    """The batch Gram residual over training steps."""
    return _curves(records, "gram_residual", "batch Gram residual $\\|C_k - I_k\\|_F$", 1.0)


def maps_kept(records: Records) -> Figure | None:
    """Validation accuracy with the first k maps, each with its readout at the time."""
    runs = _off(records)
    if not runs:
        return None
    figure, axis = _single_axis()
    for dataset, found in runs.items():
        last = [
            {row["map"]: 100 * row["validation_accuracy"] for row in r.history()} for r in found
        ]
        counts = sorted(last[0])
        means = [np.mean([run[k] for run in last if k in run]) for k in counts]
        axis.plot(counts, means, "o-", color=COLORS[dataset], label=TITLES[dataset], markersize=3.5)
    axis.set_xlabel("leading maps kept")
    axis.set_ylabel("validation accuracy, %")
    axis.legend(frameon=False, fontsize=9)
    return figure


# --- orthogonality -----------------------------------------------------------------------------


def gram(records: Records) -> Figure | None:
    """C_K and C_K − I on MNIST's validation rows, the first ten maps of seed 0."""
    cell = Cell("mnist", "piefs-off", "supervised", "paper", 0)
    if not records.has(cell) or "gram_matrix" not in records.load(cell).metrics:
        return None
    matrix = np.array(records.load(cell).metrics["gram_matrix"]["validation"])[:N_GRAM, :N_GRAM]
    rest = matrix - np.eye(len(matrix))
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    limit = float(np.abs(rest).max())
    for axis, values, bounds, title in (
        (left, matrix, 1.0, "$C_K$"),
        (right, rest, limit, f"$C_K - I$, norm {np.linalg.norm(rest):.2f}"),
    ):
        image = axis.imshow(values, cmap=SIGNED_COLORS, vmin=-bounds, vmax=bounds)
        figure.colorbar(image, ax=axis, shrink=0.85)
        axis.set_title(title)
        ticks = range(len(matrix))
        axis.set_xticks(ticks, [str(k + 1) for k in ticks])
        axis.set_yticks(ticks, [str(k + 1) for k in ticks])
        axis.spines[:].set_visible(False)
    return figure


def scatter(records: Records) -> Figure | None:
    """Gram error against accuracy, with and without labels, and where the paper's lie."""
    every = list(records)
    errors = summaries(every, "gram_error_batch", "", 1.0)
    accuracies = summaries(every)
    if not errors:
        return None
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    for axis, mode in zip(figure.subplots(1, 2), MODES, strict=True):
        for key in errors:
            if key[2:] == (mode, "paper") and key in accuracies:
                _mark(axis, key, errors[key].mean, accuracies[key].mean)
                if key[0] != EMBEDDING:  # other data than the paper's
                    _mark(axis, key, GRAM_ERROR[key][0], ACCURACY[key][0], hollow=True)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("batch Gram error $\\|C - I\\|_F^2$")
        axis.set_title(mode)
    figure.axes[0].set_ylabel("test accuracy, %")
    _scatter_legend(figure, [d for d in COLORS if any(key[0] == d for key in errors)])
    return figure


def _mark(axis: Axes, key: Key, error: float, accuracy: float, *, hollow: bool = False) -> None:
    dataset, method, *_ = key
    face, edge = ("none", COLORS[dataset]) if hollow else (COLORS[dataset], "white")
    axis.scatter(error, accuracy, marker=MARKERS[method], s=55, facecolors=face, edgecolors=edge)


def _scatter_legend(figure: Figure, datasets: list[str]) -> None:
    """Colours are data sets, shapes metrics, and what is hollow is the paper's."""
    grey, axis = "#777777", figure.axes[-1]
    shown = {TITLES[d]: axis.scatter([], [], color=COLORS[d]) for d in datasets}
    for method, marker in MARKERS.items():
        shown[method.removeprefix("piefs-")] = axis.scatter([], [], color=grey, marker=marker)
    shown["hollow: the paper's"] = axis.scatter([], [], facecolors="none", edgecolors=grey)
    outside: Any = "outside right upper"  # matplotlib's types do not know it
    figure.legend(list(shown.values()), list(shown), loc=outside, frameon=False, fontsize=9)


FIGURES: dict[str, Drawing] = {
    "geometry": geometry,
    "maps": leading_maps,
    "accuracy": accuracy,
    "residual": residual,
    "maps-kept": maps_kept,
    "gram": gram,
    "scatter": scatter,
}

CAPTIONS = {
    "geometry": "Classifier geometry: φ₂, φ₃ and the margin on Two Moons and Circles; the line is "
    "the decision boundary (`off`, seed 0).",
    "maps": "The leading maps φ₁ … φ₃ of the same runs, with validation rows by class.",
    "accuracy": "Validation accuracy over training steps (`off`), mean ± standard deviation.",
    "residual": "Batch Gram residual ‖C_k − I_k‖_F over training steps (`off`).",
    "maps-kept": "Validation accuracy by the number of leading maps (`off`). Not in the paper.",
    "gram": "C_K and C_K − I on MNIST's validation rows, K = 10, seed 0. The paper has "
    "‖C_K − I‖_F = 0.23 and largest entries of about 0.09.",
    "scatter": "Gram error against test accuracy. Circles: off, squares: diag, triangles: trotter; "
    "hollow ones are the paper's, on its own data.",
}
