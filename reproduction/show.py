"""`piefs reproduce --show CELL`: what is known of one run of the grid, for people or as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from piefs.data.files import reading
from piefs.errors import InputError
from reproduction.cells import EMBEDDING, Cell, cells_of
from reproduction.published import ACCURACY, GRAM_ERROR, OFFICIAL, reported_split
from reproduction.records import Key, Record, Records, remedy
from reproduction.text import number_of
from reproduction.variants import FRESH_SPLIT

SPLITS = ("train", "validation", "test")


def show_cell(name: str, out: Path, *, quick: bool = False, as_json: bool = False) -> None:
    """A cell's metrics, settings and versions, and the command that makes it again."""
    cell, command = Cell.parse(name), f"piefs reproduce {name}{' --quick' * quick}"
    folder = out / "quick" if quick else out
    records = Records(folder / "records")
    if not records.has(cell):
        cells_of([name])  # one that means nothing cannot be made either
        raise InputError(f"{cell} has no record in {folder}; make it: `{command} --out {out}`")
    record = records.load(cell)
    if as_json:
        print(json.dumps(record.metrics, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    with reading(record.study.file, remedy(cell)):
        tell_cell(record, console)
    console.print("\nAll that is on record:  add --json")
    console.print(f"Make it again:  {command} --out DIR", soft_wrap=True)


def tell_cell(record: Record, console: Console) -> None:
    """The record for people; the Gram matrix and every map's numbers are in its JSON."""
    metrics = record.metrics
    console.print(f"[bold]{record.cell}[/bold]")
    console.print(_scores(metrics))
    for line in (*_in_the_paper(record.cell), *_of_the_maps(record)):
        console.print(escape(line), soft_wrap=True)
    for warning in metrics.get("warnings", []):
        console.print(f"[yellow]{escape(warning['says'])}[/yellow]", soft_wrap=True)
    settings = RichTable("setting", "value")
    for name, value in (metrics["config"] | {"split seed": record.cell.split_seed}).items():
        settings.add_row(name, escape(" ".join(str(value).split())))
    console.print(settings)
    versions = ", ".join(f"{name} {version}" for name, version in metrics["versions"].items())
    console.print(f"run with {escape(versions)}", style="dim", soft_wrap=True)


def _scores(metrics: dict[str, Any]) -> RichTable:
    """What was measured on each split."""
    table = RichTable("", *SPLITS)
    for name, found in metrics.items():
        if isinstance(found, dict) and isinstance(found.get("test"), float):
            values = (found.get(split) for split in SPLITS)
            texts = ("" if value is None else f"{value:.4f}" for value in values)
            table.add_row(name.replace("_", " "), *texts)
    return table


def _in_the_paper(cell: Cell) -> list[str]:
    """The paper's accuracy for the cell, over its five seeds."""
    if (found := ACCURACY.get(_key(cell))) is None:
        return []
    split = reported_split(cell.dataset, cell.method)
    rows = "all 10,000 test images" if split == OFFICIAL else f"{split} rows"
    return [f"the paper's accuracy{_of_other_data(cell)}, {rows}: {number_of(found)} %"]


def _of_the_maps(record: Record) -> list[str]:
    """What only runs of ours have on record, and how long the run took."""
    metrics, said = record.metrics, []
    if "gram_error_batch" in metrics:
        paper = GRAM_ERROR.get(_key(record.cell))
        of = _of_other_data(record.cell)
        beside = "" if paper is None else f" (the paper's{of} {number_of(paper)})"
        said.append(f"Gram error ‖C − I‖² of batches: {metrics['gram_error_batch']:.4f}{beside}")
    if "energies" in metrics:
        energies = ", ".join(f"{energy:.3g}" for energy in metrics["energies"])
        said.append(f"energies of the {len(metrics['energies'])} maps: {energies}")
    scales = [bound for pair in metrics.get("log_scale_ranges", []) for bound in pair]
    if any(scales):
        said.append(f"log λ from {min(scales):.1f} to {max(scales):.1f}")
    steps = f"{metrics['steps']:,} steps, " if "steps" in metrics else ""
    return [*said, f"{steps}{metrics['seconds']:,.0f} s beside whatever else ran"]


def _of_other_data(cell: Cell) -> str:
    return " on another embedding" if cell.dataset == EMBEDDING else ""


def _key(cell: Cell) -> Key:
    """Under which the paper's numbers stand: other rows of the same data have the same."""
    variant = "paper" if cell.variant == FRESH_SPLIT else cell.variant
    return cell.dataset, cell.method, cell.mode, variant
