"""One cell: train or fit it, measure it, and leave its record.

A cell of ours is trained in a folder of its own, from which it resumes if it was cut off. What is
made of it, without the model, is given back; whoever asked for it writes the record. `work` does
both for one cell, `grid` for many.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from piefs.app.run import RunFolder, run
from piefs.data import Dataset, load
from piefs.data.files import library_versions
from piefs.estimators import load as load_model
from piefs.report.scores import scores_by_split
from reproduction.baselines import make_baseline
from reproduction.cells import ITEMS, Cell
from reproduction.records import Records
from reproduction.study import Rows
from reproduction.variants import QUICK

GRID_POINTS = 120
QUICK_ROWS, QUICK_TREES = 1000, 5


@dataclass(frozen=True)
class Made:
    """What a record is written from; a baseline has metrics alone."""

    metrics: dict[str, Any]
    history: Rows = field(default_factory=list)
    plane: bytes | None = None


def work(
    cell: Cell, results: str | Path, *, data_dir: str | Path | None = None, quick: bool = False
) -> dict[str, Any]:
    """Make the record of a cell, and return its metrics."""
    results = Path(results)
    made = make(cell, results / "running", data_dir=data_dir, quick=quick)
    keep(cell, made, results)
    return made.metrics


def make(
    cell: Cell, running: Path, *, data_dir: str | Path | None = None, quick: bool = False
) -> Made:
    """What the record of a cell will hold; a run that is cut off stays in the folder `running`."""
    data = _data(cell.dataset, data_dir, cell.split_seed)
    if quick:
        data = data.head(QUICK_ROWS)
    if not cell.is_piefs:
        return Made(_fit_baseline(cell, data, quick))
    return _train(cell, data, RunFolder(running / str(cell)), quick)


@lru_cache(maxsize=1)  # a process of the grid mostly has cells of one data set in a row
def _data(name: str, data_dir: str | Path | None, split_seed: int) -> Dataset:
    return load(name, data_dir, split_seed)


def keep(cell: Cell, made: Made, results: Path) -> None:
    """Write the record of a cell, then forget its run."""
    Records(results / "records").write(cell, made.metrics, made.history, made.plane)
    shutil.rmtree(results / "running" / str(cell), ignore_errors=True)


def _train(cell: Cell, data: Dataset, folder: RunFolder, quick: bool) -> Made:
    if folder.is_finished:  # and whoever was to write its record was cut off
        metrics = json.loads(folder.metrics.read_text(encoding="utf-8"))
    else:
        metrics = run(
            data,
            folder.path,
            task="classification" if cell.mode == "supervised" else "unsupervised",
            resume=True,
            figures=False,  # the report draws its own, from the records of all
            report=False,
            **cell.keywords(quick=quick),
        )
    model = load_model(folder.model)
    phi = np.asarray(model.transform(data.validation.x), float)
    metrics |= {"cell": str(cell), "split_seed": cell.split_seed}
    if cell.mode == "unsupervised":
        metrics["accuracy_standardized_probe"] = _standardized_probe(model, data)
    metrics["gram_matrix"] = {"validation": (phi.T @ phi / len(phi)).round(5).tolist()}
    is_drawn = cell in ITEMS["figure-geometry"](1)
    return Made(metrics, read_history(folder.history), _plane(model, data) if is_drawn else None)


def read_history(path: Path) -> Rows:
    """The rows of a run's history, without the values that a row lacks."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def _standardized_probe(model: Any, data: Dataset) -> dict[str, float]:
    """Accuracy by split of a logistic regression on z-scored coordinates."""
    probe = make_pipeline(model, StandardScaler(), LogisticRegression(max_iter=1000))
    probe[1:].fit(model.transform(data.train.x), data.train.y)
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    return {name: float(probe.score(rows.x, rows.y)) for name, rows in splits.items()}


def _plane(model: Any, data: Dataset) -> bytes:
    """The maps and the margin over the plane, for the paper's pictures of them."""
    low, high = data.train.x.min(axis=0), data.train.x.max(axis=0)
    axes = [np.linspace(a, b, GRID_POINTS) for a, b in zip(low - 0.2, high + 0.2, strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    shape = (GRID_POINTS, GRID_POINTS)
    arrays = {"x1": axes[0], "x2": axes[1]}
    phi = np.asarray(model.transform(points))
    for k in range(min(3, phi.shape[1])):
        arrays[f"phi{k + 1}"] = phi[:, k].reshape(shape)
    if hasattr(model, "decision_function"):
        arrays["margin"] = np.asarray(model.decision_function(points)).reshape(shape)
    small = {name: values.astype(np.float32) for name, values in arrays.items()}
    file = io.BytesIO()
    np.savez_compressed(file, **small)
    return file.getvalue()


def baseline_of(cell: Cell, *, quick: bool = False) -> Any:
    """The baseline that a cell fits, with as many features as ours has maps."""
    n_components = cell.keywords(quick=quick).get("n_components", 16)
    image = cell.dataset == "mnist"
    model = make_baseline(cell.method, seed=cell.seed, n_components=n_components, image=image)
    return model.set_params(**_short_budgets(model)) if quick else model


def _fit_baseline(cell: Cell, data: Dataset, quick: bool) -> dict[str, Any]:
    model = baseline_of(cell, quick=quick)
    start = time.perf_counter()
    model.fit(data.train.x, data.train.y)
    return {
        "cell": str(cell),
        "split_seed": cell.split_seed,
        "dataset": cell.dataset,
        "task": "classification",
        **scores_by_split(model, data),
        "seconds": time.perf_counter() - start,
        "versions": library_versions(),
        "config": {"method": repr(model), "seed": cell.seed},
    }


def _short_budgets(model: Any) -> dict[str, int]:
    """Few steps for a baseline that is trained by steps, few trees for a boosted one."""
    budgets: dict[str, int] = {}
    for name in model.get_params():
        if name.endswith("__steps"):
            budgets[name] = int(QUICK["steps_per_component"])
        elif name == "max_iter":
            budgets[name] = QUICK_TREES
    return budgets
