"""`python -m lab.fuzz.page`: counts of spoiled files, kills and mutants, on docs/trust.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.fuzz import RESULTS
from lab.fuzz.covered import COUNTS
from lab.mutants.score import scores
from piefs.data.files import write_bytes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "trust.md"
MARK = "<!-- measured -->"

NAMES = {
    "csv": "CSV table",
    "npz": "NPZ table",
    "npy": "NPY table",
    "parquet": "Parquet table",
    "arrow": "Arrow table",
    "large-npy": "NPY matrix, block by block",
    "large-parquet": "Parquet file or folder, block by block",
    "large-zarr": "Zarr array, block by block",
    "model": "model folder",
    "checkpoint": "checkpoint",
    "run": "run folder, for `piefs report`",
    "records": "records of `piefs reproduce`",
    "tuning": "folder of `piefs tune`",
    "config": "settings (TOML, JSON)",
}


def tables() -> list[str]:
    """What was counted, as Markdown: spoiled files, killed runs, changes, lines that ran."""
    counted = [_spoiled(RESULTS["fuzz"]), _killed(RESULTS["soak"]), _changed()]
    return [*counted, _covered(RESULTS["coverage"])]


def _spoiled(found: dict[str, Any]) -> str:
    lines = [
        "| reader of | files | accepted | refused in one line | crashed | hung | most memory, MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, counts in found["readers"].items():
        crashed = counts["crashed"] + counts["died"]
        cells = [counts["files"], counts["accepted"], counts["refused"], crashed, counts["hung"]]
        shown = [f"{cell:,}" for cell in cells] + [f"{counts['peak_megabytes']:.1f}"]
        lines.append(f"| {NAMES[name]} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _killed(found: dict[str, Any]) -> str:
    rows = {
        "kills (SIGKILL)": found["kills"],
        "of these before the first checkpoint": found["kills_before_the_first_step"],
        "runs that failed to resume": found["failed_to_resume"],
        "runs that finished": found["runs_finished"],
        "of these with weights equal byte for byte": found["identical"],
    }
    lines = ["| | count |", "| --- | ---: |"]
    return "\n".join(lines + [f"| {name} | {count:,} |" for name, count in rows.items()])


def _changed() -> str:
    lines = [
        "| module | changes | tried | make no difference | noticed | score |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for module, score in scores().items():
        counts = [score.changes, score.tried, score.equivalent, score.noticed]
        shown = [f"{count:,}" for count in counts] + [f"{score.share:.1%}"]
        lines.append(f"| `{module}` | {' | '.join(shown)} |")
    return "\n".join(lines)


def _covered(found: dict[str, Any]) -> str:
    lines = [
        "| part | lines | run | branches | taken |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    counts = {name: [part[one] for one in COUNTS] for name, part in found["parts"].items()}
    counts["**all**"] = [sum(column) for column in zip(*counts.values(), strict=True)]
    for name, (n_lines, run, n_branches, taken) in counts.items():
        shown = name if name.startswith("*") else f"`{name}`"
        of_branches = f"{taken / n_branches:.1%}" if n_branches else "–"
        cells = [shown, f"{n_lines:,}", f"{run / n_lines:.1%}", f"{n_branches:,}", of_branches]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Put the figures into the page."""
    parts = PAGE.read_text(encoding="utf-8").split(MARK)
    parts[1::2] = [f"\n{table}\n" for table in tables()]
    write_bytes(PAGE, MARK.join(parts).encode())


if __name__ == "__main__":
    main()
