"""Tables and records as text: Markdown, the lines of the README, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from piefs.paper.cells import PIEFS
from piefs.paper.entries import TITLES, Entry
from piefs.paper.published import ACCURACY, GRAM_ERROR, OFFICIAL, Number, reported_split
from piefs.paper.records import Record, Summary, summaries
from piefs.paper.tables import Table


def text_of(entry: Entry, digits: int = 2) -> str:
    """Ours, then the paper's in parentheses."""
    if entry.ours is None:
        return "–" if entry.paper is None else f"– ({number_of(entry.paper, digits)})"
    ours = over_seeds(entry.ours, digits)
    return ours + ("" if entry.paper is None else f" ({number_of(entry.paper, digits)})")


def over_seeds(found: Summary, digits: int = 2) -> str:
    """Mean and standard deviation, which a single seed has not, and the number of seeds."""
    return f"{number_of((found.mean, _deviation(found)), digits)} [{found.n_seeds}]"


def _deviation(found: Summary) -> float | None:
    return found.std if found.n_seeds > 1 else None


def number_of(number: Number, digits: int = 2) -> str:
    """mean ± standard deviation."""
    mean, std = number
    return f"{mean:.{digits}f}" + ("" if std is None else f" ± {std:.{digits}f}")


def markdown(table: Table) -> str:
    """The table as Markdown: ours [seeds] (paper's)."""
    lines = [
        f"### {table.title}",
        "",
        table.note,
        "",
        "| | " + " | ".join(table.columns) + " |",
        "|---|" + "---|" * len(table.columns),
    ]
    for label, entries in table.rows:
        texts = (text_of(entry, table.digits) for entry in entries)
        lines.append(f"| {label} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def headline(records: Iterable[Record]) -> str:
    """Our own cells beside the paper's, one line each, as in the README."""
    records = list(records)
    accuracy, errors = summaries(records), summaries(records, "gram_error_unbiased", "test", 1.0)
    lines = [
        "| data set | method | mode | paper, test % | ours, test % | seeds | unbiased Gram error |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, paper in ACCURACY.items():
        dataset, method, mode, variant = key
        if method not in PIEFS or variant != "paper" or key not in accuracy:
            continue
        ours = accuracy[key]
        found = number_of((ours.mean, _deviation(ours)))
        cells = (TITLES[dataset], method, mode, number_of(paper), found, str(ours.n_seeds))
        lines.append("| " + " | ".join(cells) + f" | {errors[key].mean:.2f} |")
    return "\n".join(lines) + "\n"


SUMMARY_COLUMNS = (
    *("table", "dataset", "method", "mode", "split"),
    *("mean", "std", "n_seeds", "paper_mean", "paper_std"),
)


def summary_csv(records: Iterable[Record]) -> str:
    """Accuracies in per cent, and Gram errors, of every cell on every split."""
    records = list(records)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(SUMMARY_COLUMNS)
    for split in ("train", "validation", "test", OFFICIAL):
        for key, ours in sorted(summaries(records, split=split).items()):
            dataset, method, mode, variant = key
            reported = reported_split(dataset, method) == split
            paper = ACCURACY.get(key) if reported else None
            table = "accuracy" if variant == "paper" else f"accuracy-{variant}"
            writer.writerow([table, dataset, method, mode, split, *_values(ours, paper)])
    for key, ours in sorted(summaries(records, "gram_error_batch", "", 1.0).items()):
        dataset, method, mode, variant = key
        table = "gram-error" if variant == "paper" else f"gram-error-{variant}"
        writer.writerow(
            [table, dataset, method, mode, "batch", *_values(ours, GRAM_ERROR.get(key))]
        )
    return buffer.getvalue()


def _values(ours: Summary, paper: Number | None) -> list[object]:
    paper_mean, paper_std = paper or (None, None)
    return [
        round(ours.mean, 4),
        round(ours.std, 4),
        ours.n_seeds,
        "" if paper_mean is None else paper_mean,
        "" if paper_std is None else paper_std,
    ]
