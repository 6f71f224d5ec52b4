"""Every run behind the paper's tables and figures, by name.

A cell is `dataset/method/mode/variant/seed`, e.g. `mnist/piefs-trotter/supervised/paper/3`; its
name is also the folder of its record. An item (`table-main`, `figure-gram`, …) is a set of cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from piefs.core.weighting import Dampened, Static
from piefs.errors import InputError
from reproduction.variants import FRESH_SPLIT, QUICK, VARIANTS, WEIGHT_FACTORS, Scaled

PLANE = ("two-moons", "circles")
LOW_DIMENSIONAL = (*PLANE, "htru2")
EMBEDDING = "cifar10-embedding"
"""Of another network than the paper's, so that numbers on it do not compare, only gaps."""
DATASETS = (*LOW_DIMENSIONAL, "mnist", EMBEDDING)
PAPER_EMBEDDING = "cifar10-r18"
"""The paper's own embedding takes the place of ours where it is asked for by name."""
ALL_DATASETS = (*DATASETS, PAPER_EMBEDDING)
METRICS = ("off", "diag", "trotter")
PIEFS = tuple(f"piefs-{metric}" for metric in METRICS)
PAPER_BASELINES = ("random-forest", "logistic-regression", "pca-lr", "neuralef")
MORE_BASELINES = (
    "gradient-boosting",
    "mlp",
    "bottleneck-mlp",
    "lda",
    "nca",
    "nystroem-lr",
    "svm",
)
DETERMINISTIC = ("logistic-regression", "pca-lr", "lda")
MODES = ("supervised", "unsupervised")
N_SEEDS, N_SEEDS_UNSUPERVISED = 5, 3
EXAMPLE = "mnist/piefs-trotter/supervised/paper/3"
FEASIBLE_ON = {"svm": LOW_DIMENSIONAL, "nca": LOW_DIMENSIONAL}


@dataclass(frozen=True, order=True)
class Cell:
    """One run: a method on a data set, in a mode, with a variant of its settings and a seed."""

    dataset: str
    method: str
    mode: str
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}/{self.method}/{self.mode}/{self.variant}/{self.seed}"

    @classmethod
    def parse(cls, name: str) -> Cell:
        """The cell of that name, or an InputError that says how names are made."""
        parts = name.strip("/").split("/")
        if len(parts) != 5 or not parts[4].isdigit():
            raise InputError(
                f"{name!r} is no cell: names are dataset/method/mode/variant/seed, e.g. {EXAMPLE}"
            )
        dataset, method, mode, variant, seed = parts
        cell = cls(dataset, method, mode, variant, int(seed))
        known = {
            "dataset": (cell.dataset, ALL_DATASETS),
            "method": (cell.method, (*PIEFS, *PAPER_BASELINES, *MORE_BASELINES)),
            "mode": (cell.mode, MODES),
            "variant": (cell.variant, tuple(VARIANTS)),
        }
        for what, (value, choices) in known.items():
            if value not in choices:
                raise InputError(f"no {what} {value!r}; there are {', '.join(choices)}")
        return cell

    @property
    def is_piefs(self) -> bool:
        """Whether the method is ours."""
        return self.method in PIEFS

    @property
    def split_seed(self) -> int:
        """What deals the rows: the same for all seeds, unless the variant deals them again."""
        return self.seed + 1 if self.variant == FRESH_SPLIT else 0

    def keywords(self, *, quick: bool = False) -> dict[str, Any]:
        """What the estimator is given for a cell of ours."""
        keywords: dict[str, Any] = {
            "preset": "paper",
            "metric": self.method.removeprefix("piefs-"),
            "random_state": self.seed,
        }
        if self.dataset.startswith("cifar10") and self.method == "piefs-trotter":
            keywords["steps_per_component"] = 7500  # 120,000 in all (Sec. 2.4)
        changes = VARIANTS[self.variant]
        if "metric" in changes:
            changes = changes | {"metric": {"name": keywords["metric"], **changes["metric"]}}
        keywords |= changes
        if self.variant in WEIGHT_FACTORS:
            base = Dampened() if self.mode == "supervised" else Static(1.0, 0.0, 1.0)
            keywords["weighting"] = Scaled(base, **WEIGHT_FACTORS[self.variant])
        return keywords | (QUICK if quick else {})


def _grid(
    datasets: Iterable[str],
    methods: Iterable[str],
    n_seeds: int,
    mode: str = "supervised",
    variants: Iterable[str] = ("paper",),
) -> list[Cell]:
    cells = []
    for seed, dataset, method, variant in product(range(n_seeds), datasets, methods, variants):
        if seed and method in DETERMINISTIC and variant != FRESH_SPLIT:
            continue
        if dataset in FEASIBLE_ON.get(method, DATASETS):
            its_mode = "unsupervised" if method == "neuralef" else mode
            cells.append(Cell(dataset, method, its_mode, variant, seed))
    return cells


def _main(n: int) -> list[Cell]:
    return _grid(DATASETS, (*PIEFS, *PAPER_BASELINES, *MORE_BASELINES), n)


def _by_maps(n: int) -> list[Cell]:
    """`off` with labels and without, and NeuralEF, with fewer maps than 16."""
    variants = ("paper", "maps-8", "maps-4", "maps-3")
    ours = [_grid(LOW_DIMENSIONAL, PIEFS[:1], n, mode, variants) for mode in MODES]
    return sum(ours, _grid(LOW_DIMENSIONAL, ("neuralef",), n, variants=variants))


def _by_smoothness(n: int) -> list[Cell]:
    """`off` with labels and without, the energy weighing less."""
    variants = ("paper", "smoothness-0.1", "smoothness-0.02")
    grids = (_grid(LOW_DIMENSIONAL, PIEFS[:1], n, mode, variants) for mode in MODES)
    return [cell for grid in grids for cell in grid]


def _unsupervised(n: int) -> list[Cell]:
    n = min(n, N_SEEDS_UNSUPERVISED)
    plain = _grid(DATASETS, PIEFS, n, "unsupervised")
    rescued = _grid(LOW_DIMENSIONAL, PIEFS[1:], n, "unsupervised", ("anisotropy",))
    return plain + rescued


def _variants(datasets: Iterable[str], *variants: str, n: int) -> list[Cell]:
    return _grid(datasets, ("piefs-off",), n, variants=("paper", *variants))


def _components(n: int) -> list[Cell]:
    """Each component taken away; the readout is by taking the labels away."""
    variants = ("at-once", "no-orthogonality", "no-smoothness", "no-gate")
    without_labels = _grid((*LOW_DIMENSIONAL, "mnist"), PIEFS[:1], min(n, 3), "unsupervised")
    return (
        _variants(LOW_DIMENSIONAL, *variants, n=min(n, 3))
        + _variants(("mnist",), "no-smoothness", n=min(n, 2))
        + without_labels
    )


def _readings(n: int) -> list[Cell]:
    """Our reading of the paper and the other one, where that takes minutes to try."""
    on_htru2 = {
        ("piefs-diag", "supervised"): ("paper", "metric-three-layers"),
        ("piefs-trotter", "supervised"): ("paper", "metric-three-layers"),
        ("piefs-diag", "unsupervised"): ("paper", "metric-two-layers"),
    }
    metrics = (
        _grid(("htru2",), (method,), n, mode, variants)
        for (method, mode), variants in on_htru2.items()
    )
    descent = ("paper", "sgd-momentum")
    with_labels = _grid(("two-moons", "htru2"), PIEFS[:1], n, variants=descent)
    without = _grid(PLANE, PIEFS[:1], n, "unsupervised", descent)
    return with_labels + without + [cell for cells in metrics for cell in cells]


ITEMS: dict[str, Callable[[int], list[Cell]]] = {
    "table-main": _main,
    "table-laplacian": lambda n: _variants(
        ("htru2",), "laplacian-calibrated", "laplacian-frozen", n=n
    ),
    "table-unsupervised": _unsupervised,
    "table-gram": lambda n: (
        _grid(DATASETS, PIEFS, n) + _grid(DATASETS, PIEFS, min(n, 3), "unsupervised")
    ),
    "table-components": _components,
    "table-weighting": lambda n: _variants(
        ("two-moons", "htru2"),
        "weighting-rational",
        "weighting-polynomial",
        "weighting-normalized",
        "no-gate",
        n=min(n, 3),
    ),
    "table-temperatures": lambda n: _variants(
        ("two-moons", "htru2"), "t-orth-0.01", "t-orth-1", "t-class-0.1", "t-class-2", n=min(n, 3)
    ),
    "table-batch": lambda n: _variants(
        ("mnist",), "batch-256", "batch-512", "batch-1024", "batch-4096", n=min(n, 2)
    ),
    "table-maps": lambda n: _by_maps(min(n, 2)),
    "table-smoothness": lambda n: _by_smoothness(min(n, 2)),
    "table-splits": lambda n: _grid(
        LOW_DIMENSIONAL, (*PAPER_BASELINES, *PIEFS), n, variants=(FRESH_SPLIT,)
    ),
    "table-readings": lambda n: _readings(min(n, 2)),
    "figure-geometry": lambda n: _grid(PLANE, ("piefs-off",), 1),
    "figure-maps": lambda n: _grid(PLANE, ("piefs-off",), 1),
    "figure-accuracy": lambda n: _grid(DATASETS, ("piefs-off",), n),
    "figure-residual": lambda n: _grid(DATASETS, ("piefs-off",), n),
    "figure-gram": lambda n: _grid(("mnist",), ("piefs-off",), 1),
    "figure-scatter": lambda n: (
        _grid(DATASETS, PIEFS, n) + _grid(DATASETS, PIEFS, min(n, 3), "unsupervised")
    ),
}
"""The cells behind each table and figure, for a number of seeds."""


def cells_of(
    items: Iterable[str] = (), *, datasets: Iterable[str] = (), n_seeds: int = N_SEEDS
) -> list[Cell]:
    """The cells of these items (all if none is named), cheapest and most telling first.

    An item may be the name of a cell too, which stands for itself.
    """
    items, datasets = list(items) or list(ITEMS), set(datasets)
    for dataset in datasets:
        if dataset not in ALL_DATASETS:
            raise InputError(f"no data set {dataset!r}; there are {', '.join(ALL_DATASETS)}")
    cells = {cell for item in items for cell in _named(item, n_seeds)}
    if PAPER_EMBEDDING in datasets:
        ours = [cell for cell in cells if cell.dataset == EMBEDDING]
        cells |= {replace(cell, dataset=PAPER_EMBEDDING) for cell in ours}
    return sorted((c for c in cells if not datasets or c.dataset in datasets), key=_priority)


def _named(item: str, n_seeds: int) -> list[Cell]:
    """The cells of a table or figure, or the one of that name."""
    if "/" in item:
        return [_sensible(Cell.parse(item))]
    if item not in ITEMS:
        raise InputError(
            f"no item {item!r}; there are {', '.join(ITEMS)}, and single runs by name, as {EXAMPLE}"
            "; a data set is chosen with --dataset"
        )
    return ITEMS[item](n_seeds)


def _sensible(cell: Cell) -> Cell:
    """The cell, if some table has one of its kind: a forest, say, has no maps to vary."""
    # what is varied with `off` can be varied with any metric, but not the other way round
    methods = (cell.method, *(PIEFS[:1] if cell.is_piefs else ()))
    kinds = sorted({f"{c.mode}/{c.variant}" for c in cells_of() if c.method in methods})
    reason = None
    if f"{cell.mode}/{cell.variant}" not in kinds:
        reason = f"{cell.method} has {', '.join(kinds)}"
    elif cell.dataset not in FEASIBLE_ON.get(cell.method, ALL_DATASETS):
        reason = f"{cell.method} is too slow on {cell.dataset}"
    elif cell.variant == FRESH_SPLIT and cell.dataset in (EMBEDDING, PAPER_EMBEDDING):
        reason = f"{cell.dataset} comes with its splits"
    if reason is not None:
        raise InputError(f"{cell} is no run of the grid: {reason}")
    return cell


def _priority(cell: Cell) -> tuple:
    """Low-dimensional sets and `off` first, then seeds in turn, the long `trotter` runs last."""
    methods = (*PAPER_BASELINES, *MORE_BASELINES, *PIEFS)
    return (
        cell.variant != "paper" and cell.dataset not in LOW_DIMENSIONAL,
        cell.method == "piefs-trotter" and cell.dataset not in LOW_DIMENSIONAL,
        cell.dataset not in LOW_DIMENSIONAL,
        cell.seed,
        ALL_DATASETS.index(cell.dataset),
        methods.index(cell.method),
        cell.mode,
        cell.variant,
    )
