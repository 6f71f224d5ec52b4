"""Print the table of strict runs from the records beside this file: `python results/summarize.py`.

A record is what `piefs fit DATASET --preset paper --metric METRIC --seed SEED` wrote: metrics.json
and history.csv, under records/DATASET/METHOD/MODE/VARIANT/SEED.
"""

import json
from pathlib import Path

import numpy as np

RECORDS = Path(__file__).parent / "records"

# Test accuracies in percent as the paper reports them (its main and unsupervised tables).
PAPER = {
    ("two-moons", "piefs-off", "supervised"): "99.87 ± 0.00",
    ("two-moons", "piefs-diag", "supervised"): "99.84 ± 0.08",
    ("two-moons", "piefs-trotter", "supervised"): "99.88 ± 0.03",
    ("circles", "piefs-off", "supervised"): "99.99 ± 0.03",
    ("circles", "piefs-diag", "supervised"): "99.97 ± 0.06",
    ("circles", "piefs-trotter", "supervised"): "100.00 ± 0.00",
    ("mnist", "piefs-off", "supervised"): "95.41 ± 0.32",
    ("mnist", "piefs-off", "unsupervised"): "89.85 ± 0.56",
}


def row(cell: tuple[str, str, str]) -> str:
    """One line of the table: mean ± standard deviation over the seeds there are."""
    files = sorted(RECORDS.joinpath(*cell, "paper").glob("*/metrics.json"))
    records = [json.loads(path.read_text()) for path in files]
    accuracy = 100 * np.array([record["accuracy"]["test"] for record in records])
    spread = f" ± {accuracy.std(ddof=1):.2f}" if len(accuracy) > 1 else ""
    errors = np.mean([record["gram_error"]["test"] for record in records])
    ours = f"{accuracy.mean():.2f}{spread}"
    return f"| {' | '.join(cell)} | {PAPER[cell]} | {ours} | {len(records)} | {errors:.2f} |"


def main() -> None:
    """The whole table, as Markdown."""
    print("| data set | method | mode | paper, test % | ours, test % | seeds | Gram error, test |")
    print("|---|---|---|---|---|---|---|")
    for cell in PAPER:
        if RECORDS.joinpath(*cell).exists():
            print(row(cell))


if __name__ == "__main__":
    main()
