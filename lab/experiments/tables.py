"""Records as rows: choosing them, means and spreads, Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Records = list[dict[str, Any]]


def of(records: Records, study: str, dataset: str | None = None) -> dict[str, Records]:
    """The records of a study (and data set) by method."""
    found: dict[str, Records] = defaultdict(list)
    for record in records:
        if record["study"] == study and dataset in (None, record["dataset"]):
            found[record["method"]].append(record)
    return dict(found)


def spread(records: Iterable[dict], name: str, scale: float = 100, digits: int = 2) -> str:
    """Mean ± standard deviation of a measure, or a dash."""
    values = [scale * r[name] for r in records if r.get(name) is not None]
    if not values:
        return "–"
    std = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{std}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def datasets_of(records: Records, study: str) -> list[str]:
    """The data sets of a study, in order of appearance."""
    return list(dict.fromkeys(r["dataset"] for r in records if r["study"] == study))


def gaps(found: Records, reference: Records) -> list[float]:
    """Differences in accuracy, in points, of runs with the same seed."""
    by_seed = {r["seed"]: r["accuracy"] for r in reference}
    return [100 * (r["accuracy"] - by_seed[r["seed"]]) for r in found if r["seed"] in by_seed]


def paired(found: Records, reference: Records, digits: int = 1) -> str:
    """The mean of those differences ± its standard error, and how many there are."""
    values = gaps(found, reference)
    if len(values) < 2:
        return f"{values[0]:+.{digits}f} [1]" if values else "–"
    error = np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):+.{digits}f} ± {error:.{digits}f} [{len(values)}]"
