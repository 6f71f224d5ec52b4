"""`python -m lab.benchmarks.scale_page`: what was measured of tables larger than memory."""

import json
import re
from pathlib import Path
from typing import Any

from lab.benchmarks.report import machine, table

ROOT = Path(__file__).parents[2]
RESULT, PAGE = ROOT / "lab/benchmarks/results/memory.json", ROOT / "docs/scale.md"
BEGIN, END = "<!-- memory -->", "<!-- /memory -->"


def section(found: dict[str, Any]) -> str:
    """The figures, in words and tables."""
    fit = found["fit"]
    stages = [
        [stage, f"{fit['seconds'][stage]:,.0f}", f"{fit['peak_mb'][stage]:,}"]
        for stage in fit["seconds"]
    ]
    rates = [
        [
            row["work"],
            f"{row['memory_rows_per_second']:,}",
            f"{row['file_rows_per_second']:,}",
            f"{row['ratio']:.2f}",
            " – ".join(f"{ratio:.2f}" for ratio in row["ratios"]),
        ]
        for row in found["rates"]
    ]
    growth = [
        [f"{row['n']:,}", f"{row['fixed']:.1f}", f"{row['epoch']:.1f}"]
        for row in found["growth"]["rows"]
    ]
    tenfold = found["growth"]["epoch_seconds_of_the_largest_over_a_tenth_of_its_rows"]
    return f"""{BEGIN}
## Measured

An `.npy` file of **{found["file_gb"]} GB** ({found["rows"]:,} rows, {found["features"]} columns of
float32), {found["maps"]} maps, {fit["steps"]:,} steps of {fit["batch"]} rows, then all rows
transformed and four million predicted. Memory is RssAnon, what the process holds for itself,
sampled every 50 ms: at most **{found["peak_mb"]:,} MB**. Pages of the mapped file are not counted,
since the system takes them back when others need them.

{table(["", "seconds", "peak, MB"], stages)}

Rows a second from the file, beside a slice of it in memory, taken in turns in one run:

{table(["", "memory", "file", "ratio, median", "least and most"], rates)}

Seconds of training with rows of 8 columns in memory, 2 maps, batches of 1,024, the least of three:
a thousand steps, and one epoch. Ten times the rows, from a million to ten, take {tenfold:.1f} times
as long for an epoch.

{table(["rows", "1,000 steps", "one epoch"], growth)}

{machine(found)} Other work took {found["machine"]["busy_before"]:.0%} of the cores' time when the
run began. `make bench ONLY=memory` measures anew.
{END}"""


def page(text: str, found: dict[str, Any]) -> str:
    """The page with the section in its place."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: section(found), text, flags=re.DOTALL)


def main() -> None:
    """Write the section anew."""
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULT.read_text())))
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
