"""Records of the studies: a study goes on where it was cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from piefs.data.files import library_versions
from reproduction.study import Study

RESULTS = Path("results/beyond")


def study_of(name: str) -> Study:
    """The records of a study."""
    return Study(RESULTS / "records" / name)


def record_name(dataset: str, method: str, seed: int) -> str:
    """The name of a run in its study."""
    return f"{dataset}/{method.replace(', ', '-').replace(' ', '-')}/{seed}"


def load_records() -> list[dict[str, Any]]:
    """All records, study by study in the order of their names."""
    files = sorted((RESULTS / "records").glob("[!.]*.jsonl"))
    return [found[name] for found in (study_of(file.stem) for file in files) for name in found]


def recorded(
    study_name: str, dataset: str, method: str, seed: int, measure: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The record of a run; what is not there yet is measured and written."""
    records, name = study_of(study_name), record_name(dataset, method, seed)
    if name not in records:
        named = {"study": study_name, "dataset": dataset, "method": method, "seed": seed}
        records.add(name, named | measure() | {"versions": library_versions()})
    return records[name]
