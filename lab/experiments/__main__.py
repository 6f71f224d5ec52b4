"""`python -m lab.experiments [STUDY …]`: run what is missing, one record a run."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from lab.experiments.data import OTHER_CLASSES, OTHER_NUMBERS, SETS, Task
from lab.experiments.geometry import GEOMETRY_SETS
from lab.experiments.geometry import methods as geometry_methods
from lab.experiments.labels import LABEL_COUNTS, LABEL_METHODS, few_labels
from lab.experiments.measure import scores
from lab.experiments.methods import (
    ABLATIONS,
    CLASSIFIERS,
    REGRESSORS,
    SCHEDULES,
    Method,
    baseline,
    probed,
    tuned_logistic_regression,
)
from lab.experiments.metrics import metric_runs
from lab.experiments.records import record_name, study_of
from lab.experiments.stability import watched
from piefs.data.files import library_versions
from piefs.training.runtime import keep_compiled

DETERMINISTIC = ("logistic-regression", "tuned-lr")


class Run(NamedTuple):
    """One record: a method on a data set with a seed, and with a split where `splits` is set."""

    study: str
    dataset: str
    name: str
    seed: int
    method: Method
    split: int = 0
    with_history: bool = False

    @property
    def record_name(self) -> str:
        """The name of its record in its study."""
        return record_name(self.dataset, self.name, self.seed)


def _main() -> Iterator[Run]:
    """The paper's sets: seeds on the fixed split, and ten splits of HTRU2."""
    for seed in range(5):
        for name in ("two-moons", "circles", "cifar10-embedding", "mnist"):
            methods = dict(CLASSIFIERS)
            if name in ("cifar10-embedding", "mnist"):
                methods.pop("gradient-boosting")  # ten classes of trees on 500 columns: hours
                methods["bottleneck-mlp"] = baseline("bottleneck-mlp")
            if name == "cifar10-embedding":
                methods["tuned-lr"] = tuned_logistic_regression
            for method, make in methods.items():
                if seed == 0 or method not in DETERMINISTIC:
                    yield Run("main", name, method, seed, make)
        if seed < 3:
            yield Run("main", "mnist-same-writers", "piefs", seed, CLASSIFIERS["piefs"], seed)
    for split in range(10):
        for method, make in CLASSIFIERS.items():
            yield Run("main", "htru2", method, split, make, split)


def _others() -> Iterator[Run]:
    """Sets that no setting was chosen on: five splits each, one seed a split."""
    for split in range(5):
        for name in OTHER_CLASSES:
            for method, make in CLASSIFIERS.items():
                yield Run("others", name, method, split, make, split)
        for name in OTHER_NUMBERS:
            for method, make in REGRESSORS.items():
                yield Run("others", name, method, split, make, split)


def _schedules() -> Iterator[Run]:
    for seed in range(5):
        for name, make in SCHEDULES.items():
            yield Run("schedules", "htru2", name, seed, make)
    for seed in range(3):
        for name in ("sequential", "joint", "nested"):  # of about the same length; `paper` is not
            yield Run("schedules", "cifar10-embedding", name, seed, SCHEDULES[name])


def _ablation() -> Iterator[Run]:
    for seed in range(5):
        for dataset in ("htru2", "cifar10-embedding"):
            for name, make in ABLATIONS.items():
                yield Run("ablation", dataset, name, seed, make)


def _unsupervised() -> Iterator[Run]:
    for seed in range(5):
        yield Run("unsupervised", "mnist", "piefs", seed, probed())
        if seed == 0:
            yield Run("unsupervised", "mnist", "pca-lr", seed, baseline("pca-lr"))


def _stability() -> Iterator[Run]:
    yield Run("stability", "mnist-same-writers", "piefs", 0, watched, 0, with_history=True)


def _labels() -> Iterator[Run]:
    for seed in range(3):
        for n in LABEL_COUNTS:
            for name in LABEL_METHODS:
                yield Run("labels", f"mnist-{n}", name, seed, few_labels(name, n, seed))


def _geometry() -> Iterator[Run]:
    """A split draws other rows, and another rotation."""
    for split in range(3):
        for dataset in GEOMETRY_SETS:
            for name, make in geometry_methods(dataset).items():
                yield Run("geometry", dataset, name, split, make, split)


def _metrics() -> Iterator[Run]:
    for seed in range(5):
        for dataset, name, make in metric_runs():
            yield Run("metrics", dataset, name, seed, make)


STUDIES = {
    "others": _others,
    "main": _main,
    "unsupervised": _unsupervised,
    "stability": _stability,
    "ablation": _ablation,
    "schedules": _schedules,
    "labels": _labels,
    "geometry": _geometry,
    "metrics": _metrics,
}


@lru_cache(maxsize=2)
def task_of(dataset: str, split: int) -> Task:
    """The rows of a data set; the latest are kept."""
    sets = SETS | GEOMETRY_SETS
    return sets[dataset if dataset in sets else "mnist"](split)


def execute(run: Run) -> dict:
    """Fit, measure, write."""
    task = task_of(run.dataset, run.split)
    start = time.perf_counter()
    model = run.method(task, run.seed)
    seconds = time.perf_counter() - start
    record = {
        "study": run.study,
        "dataset": run.dataset,
        "method": run.name,
        "seed": run.seed,
        "split": run.split,
        "n_train": len(task.x),
        "n_test": len(task.x_test),
        "seconds": seconds,
        **scores(model, task),
        **getattr(model, "extra_", {}),
        "settings": model.settings_.document() if hasattr(model, "settings_") else None,
        "versions": library_versions(),
    }
    if run.with_history:
        record["history"] = model.history_
    study_of(run.study).add(run.record_name, record)
    return record


def main() -> None:
    """Run the studies named on the command line, or all; what has a record is not run again."""
    parser = argparse.ArgumentParser(prog="experiments", description=__doc__)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"of: {', '.join(STUDIES)}")
    for name in ("dataset", "method"):
        parser.add_argument(f"--{name}", action="append", help=f"only this {name}; may be repeated")
    parser.add_argument("--seeds", type=int, default=10, help="only the first seeds (or splits)")
    options = parser.parse_args()
    if unknown := set(options.studies) - set(STUDIES):
        parser.error(f"no study called {', '.join(unknown)}; there are {', '.join(STUDIES)}")
    keep_compiled()
    runs = [run for study in options.studies or STUDIES for run in STUDIES[study]()]
    runs = [
        run
        for run in runs
        if run.dataset in (options.dataset or [run.dataset])
        and run.name in (options.method or [run.name])
        and run.seed < options.seeds
    ]
    studies = {name: study_of(name) for name in STUDIES}
    missing = [run for run in runs if run.record_name not in studies[run.study]]
    print(f"{len(runs) - len(missing)} of {len(runs)} runs are done", flush=True)
    for i, run in enumerate(missing, 1):
        record = execute(run)
        shown = {
            name: round(record[name], 4)
            for name in ("accuracy", "r2", "gram_error_test", "seconds")
            if name in record
        }
        print(
            f"[{i}/{len(missing)}] {run.study}/{run.record_name}: {json.dumps(shown)}", flush=True
        )


if __name__ == "__main__":
    main()
