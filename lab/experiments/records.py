"""Records on disk, one file a run: a study goes on where it was cut off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from piefs.data import atomic
from piefs.data.models import library_versions

RESULTS = Path("results/beyond")


def record_path(study: str, dataset: str, method: str, seed: int) -> Path:
    """Where the record of a run is."""
    folder = method.replace(", ", "-").replace(" ", "-")
    return RESULTS / "records" / study / dataset / folder / f"{seed}.json"


def recorded(
    study: str, dataset: str, method: str, seed: int, measure: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The record of a run; what is not there yet is measured and written."""
    path = record_path(study, dataset, method, seed)
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    named = {"study": study, "dataset": dataset, "method": method, "seed": seed}
    record = named | measure() | {"versions": library_versions()}
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, record)
    return record
