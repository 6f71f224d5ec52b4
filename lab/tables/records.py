"""The records: a fit's name, and whether it has to be made."""

from __future__ import annotations

from pathlib import Path

from lab.tables.methods import METHODS
from reproduction.study import Study

RECORDS = Path(__file__).parent / "results"


def record_name(table: str, method: str, split: int) -> str:
    """The name of a fit in its study."""
    return f"{table}/{method}/{split}"


def missing(study: Study, table: str, method: str, splits: list[int], *, idle: bool) -> list[int]:
    """The splits to run: without a record, with one of another key, or busy where idle is asked."""

    def stands(split: int) -> bool:
        found = study.get(record_name(table, method, split))
        return bool(found) and found["key"] == METHODS[method].key and found["idle"] >= idle

    return [split for split in splits if not stands(split)]
