"""Tables and records as text: Markdown, the lines of the README, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from reproduction.cells import MODES, PIEFS
from reproduction.entries import TITLES, Entry
from reproduction.overview import COMPONENTS, FAR, HEAD, OPEN, Contents, verdict
from reproduction.published import ACCURACY, GRAM_ERROR, OFFICIAL, Number, reported_split
from reproduction.records import Record, Summary, summaries
from reproduction.tables import Table


def text_of(entry: Entry, digits: int = 2) -> str:
    """Ours, then the paper's in parentheses."""
    ours = "–" if entry.ours is None else over_seeds(entry.ours, digits)
    return ours + ("" if entry.paper is None else f" ({number_of(entry.paper, digits)})")


def with_difference(entry: Entry, digits: int = 2) -> str:
    """The same, and how far they are apart in standard errors, where that can be told."""
    text = text_of(entry, digits)
    return text if entry.z is None else f"{text[:-1]}; {apart(entry.z)})"


def apart(z: float) -> str:
    """A difference in standard errors."""
    return f"{z:+.1f} s.e."


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
    """The table as Markdown: ours [seeds] (paper's; difference)."""
    lines = [
        f"### {table.title}",
        "",
        table.note,
        "",
        "| | " + " | ".join(table.columns) + " |",
        "|---|" + "---|" * len(table.columns),
    ]
    for label, entries in table.rows:
        texts = (with_difference(entry, table.digits) for entry in entries)
        lines.append(f"| {label} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def headline(records: Iterable[Record]) -> str:
    """Our own cells beside the paper's, as in the README: a line a data set and mode."""
    found = summaries(records)
    lines = ["| data set | labels | off | diag | trotter |", "|---|---|---|---|---|"]
    for mode, labels in zip(MODES, ("with", "without"), strict=True):
        for dataset, title in TITLES.items():
            keys = [(dataset, method, mode, "paper") for method in PIEFS]
            if any(key in found for key in keys):
                texts = (text_of(Entry(found.get(key), ACCURACY[key])) for key in keys)
                lines.append(f"| {title} | {labels} | " + " | ".join(texts) + " |")
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


def readme(said: Contents) -> str:
    """The contents as Markdown."""
    lines = [
        "# Results",
        "",
        " ".join(said.short),
        "",
        "Written by `piefs reproduce`; the same with figures is in `report.html`. Entries are ours,"
        " mean ± standard deviation [seeds], then in parentheses the paper's, and the difference in"
        " standard errors (of the seeds, and of the draw of the held-out rows). Accuracies are in"
        " per cent.",
        "",
        "### Training components",
        "",
        *_markdown_rows(HEAD, COMPONENTS),
        "",
        *map(markdown, said.tables),
        "### Claims",
        "",
        OPEN,
        "",
        *_markdown_rows(
            ("the paper", "where", "here", ""),
            ((c.quote, c.where, c.finding, verdict(c.holds)) for c in said.claims),
        ),
        "",
        "### Where we differ",
        "",
        FAR,
        "",
        *_markdown_rows(
            ("cell", "ours (the paper's; difference)", "why"),
            ((one.name, with_difference(one.entry, one.digits), one.why) for one in said.far),
        ),
    ]
    return "\n".join(lines) + "\n"


def _markdown_rows(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|" + "---|" * len(tuple(head)), *lines[1:]]
