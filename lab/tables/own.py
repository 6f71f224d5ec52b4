"""What the page says of piefs alone: orthonormality, intervals, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lab.experiments.tables import table
from lab.tables.data import NUMBERS
from lab.tables.methods import INTERVALS
from lab.tables.sizes import MEASURES


def own(records: list[dict[str, Any]]) -> str:
    """What only piefs says: intervals and their coverage, the Gram error beside its floor."""
    known = [r for r in records if r["method"] == "piefs" and "gram_floor" in r]
    if not known:
        return ""
    ratios = _means(known, lambda r: r["gram_error_unbiased"] / r["gram_floor"])
    parts = [
        "\n## Orthonormality on rows not seen\n\n",
        "The unbiased Gram error ‖C − I‖² on the test rows, divided by its sampling floor "
        "K(K + 1)/n ([why](closed_form.md)):\n"
        f"median {np.median(list(ratios.values())):.2f}, at most 1.2 on "
        f"{np.mean(np.array(list(ratios.values())) <= 1.2):.0%} of the tables; the largest: "
        + ", ".join(f"{n} {ratios[n]:.1f}" for n in sorted(ratios, key=ratios.get)[:-4:-1])  # type: ignore[arg-type]
        + ".\n",
    ]
    held = [r for r in known if "coverage" in r]
    if held:
        rows = [
            [name, *(f"{_mean(held, name, i):.0%}" for i in range(len(INTERVALS)))]
            for name in NUMBERS
            if any(r["table"] == name for r in held)
        ]
        found = np.array([[_mean(held, row[0], i) for i in range(3)] for row in rows])
        distance = 100 * np.abs(found - INTERVALS).mean()
        head = ["table", *(f"{share:.0%} intervals" for share in INTERVALS)]
        parts.append(
            "\n## Intervals\n\nShares of test rows that intervals of `predict(X, return_std=True)` "
            f"hold. The mean distance from what they promise is {distance:.1f} points.\n\n"
            + table(head, rows)
        )
    return "".join(parts)


def _means(records: list[dict[str, Any]], of: Any) -> dict[str, float]:
    """A mean over splits for each table."""
    names = dict.fromkeys(r["table"] for r in records)
    return {n: float(np.mean([of(r) for r in records if r["table"] == n])) for n in names}


def _mean(records: list[dict[str, Any]], name: str, i: int) -> float:
    return float(np.mean([r["coverage"][i] for r in records if r["table"] == name]))


def sizes(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Seconds and memory on more rows, on known sets, and from the shell."""
    rows = []
    for name in MEASURES:
        if (found := records.get(name)) is None:
            continue
        accuracy = "–" if "accuracy" not in found else f"{100 * found['accuracy']:.2f}"
        accuracy += f" ± {100 * found['spread']:.2f}" if "spread" in found else ""
        rows.append([name, f"{found['seconds']:.1f}", f"{found['peak_mb']:,}", accuracy])
    if not rows:
        return ""
    return (
        "\n## More rows, known sets, the shell\n\n`python -m lab.tables.sizes`: the first fit of a "
        "process, imports apart; `piefs fit` with\ncold caches; two cores. Rows are drawn, of 20 "
        "columns; the known sets are cut in ten ways, and seconds are the median of a fit.\n\n"
        + table(["", "seconds", "memory, MB", "accuracy, %"], rows)
    )
