"""Before and after: the paper's preset and ours on MNIST, their spread, weights and progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lab.experiments.data import Task
from lab.experiments.tables import Records, of, spread, table
from piefs import PIEFSClassifier
from reproduction.cells import Cell
from reproduction.records import Records as StrictRecords

STRICT = [Cell("mnist", "piefs-off", "supervised", "paper", seed) for seed in range(5)]
FIGURE = Path("results/beyond/figures/stability.png")
LEADING = (2, 4, 8, 16)
STRICT_BATCH, OUR_BATCH, STEPS_A_MAP = 2048, 256, 3750

WORDS = """
## Stability, before and after

MNIST, `off`: the strict runs of the paper's preset (`results/records`) beside `default`. Accuracy
is that on all 10,000 test images; the Gram error is the unbiased estimate on held-out images, of
other writers for the first two rows. The first k maps are those of the paper's preset as training
reached them (5,000 validation images) and, for ours, with a readout refitted on them.

"""

PICTURE = """
![Weights over time and progress](figures/stability.png)

Left: the weights that the paper's gate gives to the classes and to smoothness while its 16 maps are
trained in turn (seed 0): the noise of the batch's Gram matrix grows with the number of maps and
lowers the gate, from 0.96 on average for the first map to 0.14 for the sixteenth. Ours are
constants. Right: accuracy against the training rows seen, of the paper's preset on 5,000 official
test images, of ours on 10,000 training images held out: levels compare roughly.
"""


def watched(task: Task, seed: int) -> Any:
    """The default, scored on the held-out rows while it trains."""
    model = PIEFSClassifier(standardize=task.standardize, random_state=seed)
    return model.fit(task.x, task.y, validation_data=(task.x_test, task.y_test))


def strict_runs() -> list[tuple[dict, list[dict[str, float]]]]:
    """Metrics and history of the strict runs that there are, by seed."""
    found = StrictRecords("results/records").of(STRICT)
    return [(record.metrics, record.history()) for record in found]


def section(records: Records) -> str:
    """The table and, where a watched run is recorded, the picture."""
    strict, ours = strict_runs(), of(records, "main", "mnist").get("piefs", [])
    if not strict or not ours:
        return ""
    halves = ("validation", "test")
    before = [
        {
            "accuracy": np.mean([metrics["accuracy"][half] for half in halves]),
            "gram": np.mean([metrics["gram_error_unbiased"][half] for half in halves]),
        }
        | {str(k): _accuracy_after(history, k) for k in LEADING}
        for metrics, history in strict
    ]
    after = [
        {"accuracy": r["accuracy"], "gram": r["gram_error_test"]}
        | {str(k): r["accuracy_by_maps"][str(k)] for k in LEADING}
        for r in ours
    ]
    same = [
        {"accuracy": r["accuracy"], "gram": r["gram_error_test"]}
        | {str(k): r["accuracy_by_maps"][str(k)] for k in LEADING}
        for r in of(records, "main", "mnist-same-writers").get("piefs", [])
    ]
    rows = [
        [
            name,
            spread(found, "accuracy"),
            spread(found, "gram", 1, 3),
            *(spread(found, str(k), 100, 1) for k in LEADING),
            str(len(found)),
        ]
        for name, found in (("paper", before), ("default", after), ("default, same writers", same))
        if found
    ]
    head = ["preset", "accuracy, %", "Gram error, held out"]
    text = WORDS + table([*head, *(f"first {k} maps" for k in LEADING), "seeds"], rows)
    return text + PICTURE if of(records, "stability") else text


def _accuracy_after(history: list[dict[str, float]], n_maps: int) -> float:
    """Validation accuracy when so many maps were trained."""
    return [row["validation_accuracy"] for row in history if row["map"] == n_maps][-1]


def draw(records: Records) -> None:
    """The picture of the weights and of the progress."""
    watched_runs = [r for found in of(records, "stability").values() for r in found]
    strict = strict_runs()
    if not watched_runs or not strict:
        return
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    _, history = strict[0]
    steps = np.array([row["step"] for row in history])
    for name, label, color in (
        ("w_class", "classes", "tab:blue"),
        ("w_mde", "smoothness", "tab:green"),
    ):
        left.semilogy(steps, [row[name] for row in history], color=color, label=f"paper: {label}")
    ours = watched_runs[0]["history"][-1]
    left.axhline(ours["w_class"], color="tab:blue", ls="--", lw=1, label="default: classes")
    for turn in range(STEPS_A_MAP, int(steps[-1]), STEPS_A_MAP):
        left.axvline(turn, color="0.9", lw=0.8, zorder=0)
    left.set(xlabel="step (a new map at each line)", ylabel="weight of a loss", ylim=(8e-3, 2))
    left.set(title="MNIST")
    left.legend(loc="lower center", fontsize=8)
    for metrics, rows in strict:
        right.plot(
            [STRICT_BATCH * row["step"] for row in rows],
            [100 * row["validation_accuracy"] for row in rows],
            color="0.55",
            lw=1,
            label=f"paper, seed {metrics['config']['seed']}",
        )
    for record in watched_runs:
        right.plot(
            [OUR_BATCH * row["step"] for row in record["history"]],
            [100 * row["validation_accuracy"] for row in record["history"]],
            color="tab:red",
            lw=1.5,
            label=f"default, seed {record['seed']}",
        )
    right.set(xscale="log", ylim=(85, 100), xlabel="training rows seen")
    right.set(ylabel="accuracy on rows held out, %", title="MNIST")
    right.grid(alpha=0.3)
    right.legend(loc="lower center", fontsize=8)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=130)
    plt.close(figure)
