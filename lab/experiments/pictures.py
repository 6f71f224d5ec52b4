"""Pictures of the studies: ablation, few labels, and the benchmark on which geometry matters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lab.experiments.geometry import MORE
from lab.experiments.records import RESULTS
from lab.experiments.tables import Records, datasets_of, gaps, of
from piefs.report.plot.style import CLASS_COLORS, STYLE

FOLDER = RESULTS / "figures"
OURS, OTHERS = "-", "--"


def ablation(records: Records) -> Figure | None:
    """What each change costs, a panel a data set: every seed, their mean and its standard error."""
    datasets = datasets_of(records, "ablation")
    if not datasets:
        return None
    figure, axes = plt.subplots(
        1, len(datasets), figsize=(5.2 * len(datasets), 4.2), layout="constrained", squeeze=False
    )
    for axis, dataset in zip(axes[0], datasets, strict=True):
        methods = of(records, "ablation", dataset)
        reference = methods.pop("default")
        found = {name: gaps(runs, reference) for name, runs in methods.items()}
        order = sorted(found, key=lambda name: np.mean(found[name]))
        for y, name in enumerate(order):
            values = np.array(found[name])
            axis.plot(values, np.full(len(values), y), "o", color="0.75", ms=4)
            error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
            color = CLASS_COLORS[1] if values.mean() < 0 else CLASS_COLORS[0]
            axis.errorbar(values.mean(), y, xerr=error, fmt="D", color=color, ms=5, capsize=3)
        axis.axvline(0, color="0.4", lw=1)
        axis.set_yticks(range(len(order)), order)
        axis.set(title=dataset, xlabel="test accuracy less the default's, points")
        axis.grid(axis="x", alpha=0.3)
    return figure


def labels(records: Records) -> Figure | None:
    """Accuracy against the number of labels, a line a method; one number makes no line."""
    counts = {int(name.split("-")[1]): name for name in datasets_of(records, "labels")}
    if len(counts) < 2:
        return None
    figure, axis = plt.subplots(figsize=(8.6, 4.4), layout="constrained")
    lines = {name: _line(records, "labels", name, counts) for name in of(records, "labels")}
    for i, (name, (x, mean, error)) in enumerate(_from_the_top(lines)):
        style = OURS if name.startswith("piefs") else OTHERS
        axis.errorbar(
            x, mean, yerr=error, ls=style, marker="o", ms=4, color=CLASS_COLORS[i], label=name
        )
    axis.set(xscale="log", xlabel="labels a class", ylabel="test accuracy, %", title="MNIST")
    axis.set_xticks(sorted(counts), [f"{n:,}" for n in sorted(counts)])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize=8)
    return figure


def geometry(records: Records) -> Figure | None:
    """Accuracy against the number of labels, a panel for each way the plane lies."""
    datasets = datasets_of(records, "geometry")
    kinds = list(dict.fromkeys(name.split("-")[0] for name in datasets))
    if not kinds:
        return None
    found = of(records, "geometry")
    names = [name for name in found if name + MORE not in found]  # the better chosen of two
    names.sort(key=lambda name: not name.startswith("off"))  # which has no colour
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(3.6 * len(kinds) + 2.4, 3.8), layout="constrained", sharey=True
    )
    for axis, kind in zip(np.atleast_1d(axes), kinds, strict=True):
        counts = {int(d.split("-")[1]): d for d in datasets if d.startswith(f"{kind}-")}
        for i, name in enumerate(names):
            x, mean, error = _line(records, "geometry", name, counts)
            peer = name in ("recursive-feature-machine", "random-forest", "mutual-information")
            look: dict[str, Any] = {"ls": OTHERS if peer else OURS, "color": CLASS_COLORS[i - 1]}
            if name.startswith("off"):
                look |= {"color": "black", "lw": 2.2}
            axis.errorbar(x, mean, yerr=error, marker="o", ms=3.5, label=name, **look)
        axis.set(xscale="log", xlabel="labelled rows", title=kind)
        axis.set_xticks(sorted(counts), [f"{n:,}" for n in sorted(counts)])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("test accuracy, %")
    handles = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", fontsize=8)
    return figure


def _line(
    records: Records, study: str, name: str, counts: dict[int, str]
) -> tuple[list[int], list[float], list[float]]:
    """Numbers of labels, mean accuracies in percent, and their standard deviations."""
    found = {n: of(records, study, counts[n]).get(name, []) for n in sorted(counts)}
    values = {n: [100 * r["accuracy"] for r in runs] for n, runs in found.items() if runs}
    means = [float(np.mean(v)) for v in values.values()]
    return list(values), means, [float(np.std(v, ddof=len(v) > 1)) for v in values.values()]


def _from_the_top(lines: dict[str, Any]) -> list[tuple[str, Any]]:
    """In the order in which their right ends stand, as the eye meets them."""
    return sorted(lines.items(), key=lambda item: -item[1][1][-1])


PICTURES: dict[str, Callable[[Records], Figure | None]] = {
    "ablation": ablation,
    "labels": labels,
    "geometry": geometry,
}


def draw(records: Records, folder: Path = FOLDER) -> None:
    """Draw every picture that there are records for."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for name, picture in PICTURES.items():
            if figure := picture(records):
                figure.savefig(folder / f"{name}.png", dpi=130)
                plt.close(figure)
