"""Code blocks of Markdown pages, and how they are run."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from piefs.estimators import base
from piefs.estimators.decisions import Facts
from piefs.training import graph
from piefs.training.config import Settings

ROOT = Path(__file__).parent.parent


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language, in order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


def run_python(page: Path) -> dict[str, Any]:
    """Run the Python of a page from its first block to its last; what it has named."""
    names: dict[str, Any] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)
    return names


def train_briefly(monkeypatch: Any, n_steps: int = 30) -> None:
    """Let every fit end after a few steps: what a page shows is that its code runs.

    Maps are distilled in a few steps, too.
    """
    decide = base.decided

    def few_steps(asked: Settings, facts: Facts) -> Settings:
        settings = decide(asked, facts)
        if settings.solver == "eigen":  # takes none
            return settings
        return replace(settings, steps_per_component=min(settings.steps_per_component, n_steps))

    monkeypatch.setattr(base, "decided", few_steps)
    monkeypatch.setattr(graph, "N_STEPS", n_steps)


def commands(page: Path) -> list[str]:
    """The lines that a page tells people to type: `sh` blocks, and `$` lines of `console` ones."""
    typed = [line for block in blocks(page, "sh") for line in block.splitlines()]
    shown = [line for block in blocks(page, "console") for line in block.splitlines()]
    typed += [line.removeprefix("$ ") for line in shown if line.startswith("$ ")]
    return [line.split(" #")[0].strip() for line in typed if line.strip()]
