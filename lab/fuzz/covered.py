"""`python -m lab.fuzz.covered REPORT`: a summary of coverage.py's JSON report is kept."""

from __future__ import annotations

import json
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lab.fuzz import RESULTS


def part_of(file: str) -> str:
    """The package or module of piefs that a source file belongs to."""
    _, _, inside = file.partition("piefs/")
    return inside.split("/")[0].removesuffix(".py")


def summary(files: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Lines and branches of each part, those that ran, and where the others are."""
    parts: dict[str, dict[str, Any]] = {}
    for file, found in sorted(files.items()):
        part = parts.setdefault(part_of(file), dict.fromkeys(COUNTS, 0) | {"missing": {}})
        for name, source in COUNTS.items():
            part[name] += found["summary"][source]
        arcs = [f"{a}→{b}" for a, b in found["missing_branches"] if a not in found["missing_lines"]]
        if missing := [*map(str, found["missing_lines"]), *arcs]:
            part["missing"][file.partition("piefs/")[2]] = " ".join(missing)
    return parts


COUNTS = {
    "lines": "num_statements",
    "lines_run": "covered_lines",
    "branches": "num_branches",
    "branches_taken": "covered_branches",
}


def main() -> None:
    """Write the summary."""
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    about = {"date": str(date.today()), "coverage": version("coverage")}
    RESULTS.add("coverage", {**about, "parts": summary(report["files"])})


if __name__ == "__main__":
    main()
