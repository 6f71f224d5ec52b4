"""Strangers' files, by the thousand: mutations of real files, given to every reader of piefs.

`python -m lab.fuzz` (or `make fuzz`) keeps counts in `lab/fuzz/results.jsonl`; `python -m
lab.fuzz.soak` (or `make soak`) kills runs and resumes them; `python -m lab.fuzz.atheris TARGET`
searches by coverage.
"""

from pathlib import Path

from reproduction.study import Study

RESULTS = Study(Path(__file__).parent / "results")
"""What was counted: `fuzz`, `soak` and `coverage`."""
