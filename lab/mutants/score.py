"""`python -m lab.mutants.score`: scores of the trials, and the changes that no test notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from reproduction.study import Study

FOLDER = Path(__file__).parent
RESULTS = Study(FOLDER / "results")
"""What was tried, a record for each module."""
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"


class Score(NamedTuple):
    """Counts of a module; `equivalent` changes make no difference, and are in no score."""

    changes: int
    tried: int
    noticed: int
    equivalent: int
    unnoticed: list[str]

    @property
    def share(self) -> float:
        """Changes noticed, of those that make a difference."""
        return self.noticed / (self.tried - self.equivalent)


def scores() -> dict[str, Score]:
    """The score of each module."""
    excused = json.loads((FOLDER / "equivalent.json").read_text(encoding="utf-8"))
    return {module: _score(found, excused) for module, found in RESULTS.items()}


def _score(found: dict[str, Any], excused: dict[str, str]) -> Score:
    trials = found["trials"]
    survived = [key for key, trial in trials.items() if trial["verdict"] == SURVIVED]
    unnoticed = [key for key in survived if without_line(key) not in excused]
    n_equivalent = len(survived) - len(unnoticed)
    noticed = len(trials) - len(survived)
    return Score(found["changes"], len(trials), noticed, n_equivalent, unnoticed)


def without_line(key: str) -> str:
    """A change by its module and its text: lines move."""
    place, _, change = key.partition("\n")
    return f"{place.split()[0]}\n{change}"


def main() -> None:
    """Print scores, and what is left to look at."""
    for module, score in scores().items():
        print(f"{module}: {score.share:.1%} of {score.tried} (of {score.changes} possible)")
        for key in score.unnoticed:
            print("  " + key.replace("\n", "\n    "))


if __name__ == "__main__":
    main()
