"""`python -m lab.tables.page`: docs/tables.md and its pictures, from the records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from lab.experiments.tables import table
from lab.tables import pictures
from lab.tables.data import CLASSES, NUMBERS, TABLES
from lab.tables.methods import METHODS
from lab.tables.own import own, sizes
from lab.tables.ranking import (
    Scores,
    by_table,
    critical_difference,
    friedman,
    gaps,
    matrix,
    ranks,
    scored,
    shares_near_best,
)
from lab.tables.records import RECORDS
from lab.tables.sizes import RECORDS as SIZES
from piefs.report.plot.style import STYLE
from reproduction.study import Study

DOCS = Path(__file__).parents[2] / "docs"
LEAST_TABLES = 5
"""With fewer, ranks say nothing."""

HEAD = f"""# Tables

The default estimators, without a keyword, beside what people use for tables: {len(CLASSES)} public
tables with classes and {len(NUMBERS)} with numbers to predict, of 167 to 20,000 rows. All methods
fit the same 70 % of the rows and are scored on the other 30 %, in up to five splits with class
shares kept. CatBoost, EBM and boosting (scikit-learn's histograms) get categories as they are, the
others one-hot. Gaps are left to those three and the random forest (200 trees); for the others the
training rows' median fills them. Linear is logistic or ridge regression with its penalty
cross-validated, MLP has two hidden layers of 256 and stops early, SVM has an RBF kernel, C and γ
from three folds, and Platt's probabilities; these three get z-scored columns. CatBoost, EBM,
RealMLP (TD) and xRFM have their own defaults. Every fit has two cores.

`make bench ONLY=tables` fits what is missing in `lab/tables/results.jsonl`, which also holds RMSE,
memory and versions, and writes this page. The development of piefs has seen these tables.
"""

EXPLANATION = """Ranks are those of accuracy or R², averaged over splits, then ranked on each table.
*Near the best* is the share of tables within one point (0.01) of the best; the *gap* to the best is
in points, at most 100 on a table. Log loss and calibration error (ECE, 15 bins) are means over
tables with classes; probabilities below 10⁻⁶ count as 10⁻⁶.{seconds}
"""

SECONDS = "\nSeconds of a fit are the median over tables, measured on an idle machine."
NO_SECONDS = "\nSeconds are shown only if nothing else ran on the machine; such runs are missing."


def present(records: list[dict[str, Any]]) -> list[str]:
    """The methods that have a record, in the order of `METHODS`."""
    found = {record["method"] for record in records}
    return [name for name in METHODS if name in found]


def complete(records: list[dict[str, Any]]) -> list[str]:
    """The methods that have a record of every table that anybody has."""
    tables = {record["table"] for record in records}
    seen = {name: {r["table"] for r in records if r["method"] == name} for name in METHODS}
    return [name for name in present(records) if seen[name] == tables]


def fit_seconds(records: list[dict[str, Any]], scores: Scores) -> dict[str, float]:
    """Median seconds over the tables of `scores`, of the methods with idle runs on all of them."""
    idle = [r for r in records if r["idle"]]
    found = {}
    for name in present(idle):
        seconds = by_table(idle, "fit_seconds", [name])
        if scores and seconds.keys() >= scores.keys():
            found[name] = float(np.median([seconds[key][name] for key in scores]))
    return found


def comparison(records: list[dict[str, Any]], methods: list[str]) -> str:
    """Ranks, gaps, calibration and seconds over the tables that all methods have."""
    scores = scored(records, methods)
    values = matrix(scores, methods)
    probabilities = {
        name: matrix(by_table(records, name, methods), methods) for name in ("log_loss", "ece")
    }
    seconds = fit_seconds(records, scores)
    columns = [ranks(values).mean(axis=0), shares_near_best(values), gaps(values).mean(axis=0)]
    rows = [
        [
            _name(method),
            f"{columns[0][i]:.2f}",
            f"{columns[1][i]:.0%}",
            f"{columns[2][i]:.2f}",
            *(f"{p[:, i].mean():.4f}" if len(p) else "–" for p in probabilities.values()),
            f"{seconds[method]:,.1f}" if method in seconds else "–",
        ]
        for i, method in enumerate(methods)
    ]
    rows.sort(key=lambda row: float(row[1]))
    head = ["method", "mean rank", "near the best", "gap", "log loss", "ECE", "fit, s"]
    p = friedman(values)
    equal = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    difference = critical_difference(len(methods), len(values))
    return (
        f"{len(values)} tables. All ranks equal: {equal} (Friedman); two methods differ if their "
        f"mean ranks\nare {difference:.2f} apart (Nemenyi, 5 %).\n\n{table(head, rows)}"
    )


def details(records: list[dict[str, Any]], measure: str, names: Iterable[str], style: str) -> str:
    """A row for each table: means over the splits of all methods that have it, the best in bold."""
    methods = present(records)
    best = min if measure in ("log_loss", "ece") else max
    rows = []
    for name in names:
        own = [record for record in records if record["table"] == name]
        if row := by_table(own, measure, present(own)).get(name):
            cells = {m: format(value, style) for m, value in row.items()}
            top = cells[best(row, key=row.__getitem__)]
            cells = {m: f"**{cell}**" if cell == top else cell for m, cell in cells.items()}
            rows.append([name, *(cells.get(m, "–") for m in methods)])
    if not rows:
        return "No records yet.\n"
    return table(["table", *(METHODS[m].label for m in methods)], rows)


def behind(records: list[dict[str, Any]], methods: list[str], points: float = 3.0) -> str:
    """The tables on which piefs is more than so many points behind the best, by name."""
    scores = scored(records, methods)
    found = []
    for name, row in scores.items():
        best = max(row, key=row.__getitem__)
        gap = 100 * (row[best] - row["piefs"])
        if gap > points:
            found.append(f"{name} ({gap:.1f} behind {METHODS[best].label})")
    listed = ", ".join(found) or "none"
    return f"\nTables on which piefs is more than {points:.0f} points behind the best: {listed}.\n"


def page(records: list[dict[str, Any]]) -> str:
    """The whole page."""
    if not records:
        return f"{HEAD}\n**There are no records yet.**\n"
    parts, methods = [HEAD], complete(records)
    if _comparable(records, methods):
        timed = fit_seconds(records, scored(records, methods))
        parts += ["\n## In short\n\n", EXPLANATION.format(seconds=SECONDS if timed else NO_SECONDS)]
        parts += ["\n", comparison(records, methods)]
        parts.append(behind(records, methods) if "piefs" in methods else "")
        parts.append("\n![Mean ranks of the methods](images/tables-ranks.png)\n")
        if len(timed) > 1:
            parts.append("\n![Mean rank against seconds](images/tables-time.png)\n")
    every = present(records)
    if every != methods and _comparable(records, every):
        parts.append("\n## On the tables that every method has\n\n")
        if len(parts) == 2:  # nothing has been explained yet
            timed = fit_seconds(records, scored(records, every))
            parts += [EXPLANATION.format(seconds=SECONDS if timed else NO_SECONDS), "\n"]
        parts.append(comparison(records, every))
        parts.append(behind(records, every) if "piefs" in every else "")
    for title, measure, names, style in (
        ("Accuracy", "accuracy", CLASSES, ".2%"),
        ("R²", "r2", NUMBERS, ".3f"),
        ("Log loss", "log_loss", CLASSES, ".3f"),
        ("Calibration error", "ece", CLASSES, ".3f"),
    ):
        parts.append(f"\n## {title}\n\n{details(records, measure, names, style)}")
    return "".join([*parts, own(records)])


def draw(records: list[dict[str, Any]], folder: Path) -> None:
    """The pictures that there are records for."""
    methods = complete(records)
    if not _comparable(records, methods):
        return
    scores = scored(records, methods)
    means = ranks(matrix(scores, methods)).mean(axis=0)
    mean_ranks = dict(zip(methods, map(float, means), strict=True))
    seconds = fit_seconds(records, scores)
    with plt.rc_context(STYLE):
        difference = critical_difference(len(methods), len(scores))
        pictures.save(pictures.rank_diagram(mean_ranks, difference), folder / "tables-ranks.png")
        if len(seconds) > 1:
            figure = pictures.rank_against_time(mean_ranks, seconds)
            pictures.save(figure, folder / "tables-time.png")


def load_records(path: Path = RECORDS) -> list[dict[str, Any]]:
    """The records of methods as they are now, tables in their order."""
    found: list[Mapping[str, Any]] = [
        r for r in Study(path).values() if r["key"] == METHODS[r["method"]].key
    ]
    return sorted(map(dict, found), key=lambda r: (TABLES.index(r["table"]), r["split"]))


def _comparable(records: list[dict[str, Any]], methods: list[str]) -> bool:
    return len(methods) > 2 and len(scored(records, methods)) >= LEAST_TABLES


def _name(method: str) -> str:
    label = METHODS[method].label
    return f"**{label}**" if method == "piefs" else label


def main() -> None:
    """Write page and pictures."""
    records = load_records()
    whole = page(records) + sizes(Study(SIZES))
    (DOCS / "tables.md").write_text(whole, encoding="utf-8")
    draw(records, DOCS / "images")
    print("wrote docs/tables.md")


if __name__ == "__main__":
    main()
