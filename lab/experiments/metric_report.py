"""The sections of the report on metrics: the geometry benchmark, and what each metric buys."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lab.experiments.geometry import METRICS as GEOMETRY_METRICS
from lab.experiments.geometry import MORE
from lab.experiments.metrics import METRICS as METRICS_TRIED
from lab.experiments.tables import Records, datasets_of, gaps, of, paired, table

GEOMETRY_ORDER = [name + more for name in GEOMETRY_METRICS for more in ("", MORE)]

GEOMETRY = """
## Where geometry matters

Generated: the class is one of five sectors of a plane in 20 dimensions; the other 18 directions are
noise (`lab/experiments/geometry.py`). The name says how the plane lies and how many rows are
labelled. A split draws other rows and another rotation. Ours are 4 maps with hidden layers (64,
64), `orthogonality` 1 and 2,000 steps on columns as they are. Every metric has its smoothness
chosen on the same validation rows among three values, `off` too, or among five that go down to the
preset's own; the gain is over `off` with as many values on the same split. Angle: the largest
principal angle between the true plane and the two leading directions, of the average gradient outer
product of the maps (or of the forest's importances, or of the mutual information, on the diagonal),
and of the inverse metric. Ranking: Spearman's correlation of the columns' relevance with their true
share of the plane.

![Accuracy against the number of labelled rows](figures/geometry.png)
"""

GAPS = """
### Without labels, against `off`

The difference in points of a linear probe's test accuracy, paired by seed: mean ± its standard
error [seeds]. The paper's `diag` has the volume constraint.

"""

METRICS = """
## What a metric buys

The metric alone is changed; all other settings are those of `off`. With labels: the preset
`default`, 1,000 steps. Without: the preset `paper` with static weights, 8 maps of 300 steps at
batch 512, probed by a logistic regression. First 10,000 training rows, all test rows. The gap is
the difference to `off` in points, paired by seed; log λ is the widest range max log λ − min log λ.
Short budgets: the figures compare metrics with each other, not with the tables above. The records
hold a metric more, which piefs no longer has.

"""


def _mean(found: Records, name: str, factor: float = 1.0, digits: int = 1) -> str:
    values = [factor * r[name] for r in found if r.get(name) is not None]
    return f"{np.mean(values):.{digits}f}" if values else "–"


def _gap(found: Records, reference: Records) -> str:
    """The mean difference in accuracy, paired by seed, in points."""
    values = gaps(found, reference)
    return f"{np.mean(values):+.1f}" if values else "–"


def _from_off(methods: dict[str, Records], order: Iterable[str]) -> list[tuple[str, Records]]:
    """The methods as a study names them, from `off` on, and then what else there is."""
    named = [name for name in order if name in methods]
    return [(name, methods[name]) for name in dict.fromkeys([*named, *methods])]


def gaps_without_labels(records: Records) -> str:
    """Every metric against `off` on every data set, without labels."""
    ending = ", no labels"
    datasets = datasets_of(records, "metrics")
    by_set = {dataset: of(records, "metrics", dataset) for dataset in datasets}
    names = [name for name in METRICS_TRIED if name != "off"]
    rows = [
        [name]
        + [
            paired(by_set[d].get(name + ending, []), by_set[d].get("off" + ending, []))
            for d in datasets
        ]
        for name in names
    ]
    rows = [row for row in rows if any(cell != "–" for cell in row[1:])]
    return GAPS + table(["metric", *datasets], rows) if rows else ""


def geometry_benchmark(records: Records) -> str:
    """Accuracy, the gain over `off`, and how well the informative plane is found."""
    text = ""
    for dataset in _geometry_sets(records):
        methods = of(records, "geometry", dataset)
        rows = [
            [
                name,
                _mean(found, "accuracy", 100),
                _gap(found, methods.get("off" + MORE if name.endswith(MORE) else "off", [])),
                _mean(found, "angle_maps"),
                _mean(found, "angle_metric"),
                _mean(found, "ranking_maps", 1, 2),
                _mean(found, "ranking_metric", 1, 2),
                str(len(found)),
            ]
            for name, found in _from_off(methods, GEOMETRY_ORDER)
        ]
        head = ["method", "test accuracy, %", "gain", "angle, maps", "angle, metric"]
        head += ["ranking, maps", "ranking, metric", "n"]
        text += f"\n### {dataset}\n\n" + table(head, rows)
    return GEOMETRY + text if text else ""


def _geometry_sets(records: Records) -> list[str]:
    """The data sets of the benchmark by kind, then by the number of labelled rows."""

    def key(dataset: str) -> tuple[str, int]:
        kind, n_rows = dataset.split("-")
        return kind, int(n_rows)

    return sorted(datasets_of(records, "geometry"), key=key)


def geometry_summary(records: Records) -> str:
    """Accuracy by method and data set, and the angle at which a metric finds the plane."""
    datasets = _geometry_sets(records)
    by_set = {dataset: of(records, "geometry", dataset) for dataset in datasets}
    methods = _from_off(of(records, "geometry"), GEOMETRY_ORDER)
    rows = [[name, *(_found(by_set[d].get(name, [])) for d in datasets)] for name, _ in methods]
    return table(["method", *datasets], rows)


def _found(found: Records) -> str:
    """Accuracy, and in parentheses the angle of the metric, or else that of what stands for it."""
    angle = "angle_metric" if found and "angle_metric" in found[0] else "angle_maps"
    return f"{_mean(found, 'accuracy', 100)} ({_mean(found, angle, 1, 0)}°)" if found else "–"


def metrics_study(records: Records) -> str:
    """Accuracy, Gram error, anisotropy and time of each metric, with labels and without."""
    text = ""
    for dataset in datasets_of(records, "metrics"):
        methods = of(records, "metrics", dataset)
        for mode in ("labels", "no labels"):
            ending = f", {mode}"
            chosen = {
                name: methods[name + ending] for name in METRICS_TRIED if name + ending in methods
            }
            rows = [
                [
                    name,
                    _mean(found, "accuracy", 100, 2),
                    _gap(found, chosen.get("off", [])),
                    _mean(found, "gram_error_test", 1, 3),
                    _mean(found, "log_scale_range", 1, 2),
                    _mean(found, "seconds", 1, 0),
                    str(len(found)),
                ]
                for name, found in chosen.items()
            ]
            if rows:
                head = ["metric", "test accuracy, %", "gap", "Gram error, test", "log λ"]
                head += ["seconds", "n"]
                text += f"\n### {dataset}, {mode}\n\n" + table(head, rows)
    return METRICS + gaps_without_labels(records) + text if text else ""
