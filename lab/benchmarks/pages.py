"""`python -m lab.benchmarks.pages`: every page and table that shows what has been measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.benchmarks import operators_page, plan_page, speed_page
from lab.benchmarks.results import RESULTS, ROOT, machine, table
from piefs.training.checks import METRICS

DOCS = ROOT / "docs"


def large_tables(found: dict[str, Any]) -> str:
    """Tables larger than memory: seconds, memory and rates."""
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
    return f"""## Measured

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
run began. `make bench ONLY=memory` measures again.
"""


def cost(results: Mapping[str, dict[str, Any]]) -> str:
    """A step with each metric at d = 784, against `trotter`."""
    rows = [
        [row["name"], f"{row['parameters']:,}", row["milliseconds"], row["ratio_to_trotter"]]
        for row in results["rotations"]["rows"]
        if row["metric"] in METRICS  # older records have more
    ]
    return table(["metric", "parameters", "ms a step", "× trotter"], rows)


def reach(results: Mapping[str, dict[str, Any]]) -> str:
    """How near each family comes to a random rotation of ℝ¹⁶."""
    rows = [
        [row["name"], str(row["depth"] or "–"), row["parameters"], row["error"]]
        for row in results["expressivity"]["rows"]
        if row["name"] in METRICS
    ]
    return table(["family", "depth", "parameters", "distance"], rows)


def insets(results: Mapping[str, dict[str, Any]]) -> list[tuple[Path, str, str]]:
    """Tables on other pages: the page, the name between its marks, the text."""
    return [
        (DOCS / "scale.md", "memory", large_tables(results["memory"])),
        (DOCS / "metrics.md", "cost", cost(results) + "\n"),
        (DOCS / "metrics.md", "reach", reach(results) + "\n"),
    ]


def pages(results: Mapping[str, dict[str, Any]]) -> dict[Path, str]:
    """Whole pages."""
    return {
        DOCS / "speed.md": speed_page.page(results),
        DOCS / "plan.md": plan_page.page(results["distributed"]),
        DOCS / "operators-accuracy.md": operators_page.page(results["operators"]),
    }


def main() -> None:
    """Write them."""
    results = {name: RESULTS[name] for name in RESULTS}
    for path, text in pages(results).items():
        path.write_text(text, encoding="utf-8")
    for path, name, made in insets(results):
        before, rest = path.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n{made}<!-- /{name} -->{after}"
        path.write_text(text, encoding="utf-8")
    speed_page.draw(results)
    print(f"wrote pages in {DOCS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
