"""All tables from the records: the paper's own, then those of what it leaves open."""

from __future__ import annotations

from collections.abc import Iterable

from reproduction.entries import Table
from reproduction.records import Record
from reproduction.tables import papers, unsettled

__all__ = ["Table", "tables"]


def tables(records: Iterable[Record]) -> list[Table]:
    """All tables of which anything has been measured."""
    records = list(records)
    made = [
        papers.main(records, "test"),
        papers.main(records, "validation"),
        unsettled.splits(records),
        papers.more_baselines(records),
        papers.laplacian(records),
        *(papers.unsupervised(records, probe) for probe in papers.PROBES),
        *(papers.gram(records, kind) for kind in papers.GRAM_KINDS),
        *(unsettled.variants(records, item) for item in unsettled.VARIANT_TITLES),
        unsettled.maps(records),
        unsettled.smoothness(records),
        unsettled.readings(records),
    ]
    return [table for table in made if not table.is_empty]
