"""What has been measured, and how pages show it."""

from pathlib import Path
from typing import Any

from reproduction.study import Study

ROOT = Path(__file__).parents[2]
RESULTS = Study(Path(__file__).parent / "results")
"""One record a benchmark."""


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table, numbers to the right."""
    align = ["---" if isinstance(cell, str) else "---:" for cell in rows[0]]
    lines = [header, align, *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(found: dict[str, Any]) -> str:
    """Processor, cores, memory and versions of a measurement."""
    about = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return (
        f"{about['processor']}, {about['cores']} cores, {about['memory_gb']} GB, "
        f"Python {about['python']}; {versions}."
    )
