"""`piefs reproduce`: the grid with its progress, then the report; `--show CELL` for one run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from piefs.app.options import DataDir, Json, Quiet, command
from piefs.data.fetch import FILES, locate
from piefs.data.files import reading
from piefs.errors import DataNotFoundError, InputError
from reproduction.cells import EMBEDDING, Cell, cells_of
from reproduction.grid import Progress, Watcher, run_grid
from reproduction.published import ACCURACY, GRAM_ERROR, OFFICIAL, reported_split
from reproduction.records import Key, Record, Records, remedy
from reproduction.report import write_report
from reproduction.text import number_of
from reproduction.variants import FRESH_SPLIT

app = typer.Typer(add_completion=False)


@command(app)
def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables and figures, e.g. table-main, or single runs, e.g. "
            "mnist/piefs-off/supervised/paper/0; all if none is named."
        ),
    ] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this data set.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds a cell.", min=1)] = 5,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, one a core.", min=1)] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Train on a Dask cluster: its scheduler's address, tcp://HOST:8786."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny budgets: a test of the whole way.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing; write the report.")
    ] = False,
    show: Annotated[str | None, typer.Option(help="Print what is known of one cell.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for records and report.")] = Path("results"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Re-derive the paper's tables and figures, each number beside the paper's."""
    if show is not None:
        return show_cell(show, out, quick=quick, as_json=as_json)
    if as_json:
        raise InputError("--json goes with --show; the grid itself leaves summary.csv")
    reproduce_paper(
        items or [],
        out / "quick" if quick else out,  # so that they never mix with real ones
        datasets=dataset or [],
        n_seeds=seeds,
        jobs=jobs,
        dask=dask,
        quick=quick,
        report_only=report_only,
        data_dir=data_dir,
        quiet=quiet,
    )


def reproduce_paper(
    items: Sequence[str],
    out: Path,
    *,
    datasets: Sequence[str],
    n_seeds: int,
    jobs: int | None,
    dask: str | None,
    quick: bool,
    report_only: bool,
    data_dir: Path | None,
    quiet: bool,
) -> None:
    """Make the records that are missing, then the report on all that are there."""
    console = Console(quiet=quiet)
    cells = cells_of(items, datasets=datasets, n_seeds=1 if quick else n_seeds)
    if not cells:
        raise InputError(f"nothing of {', '.join(items)} is on {', '.join(datasets)}")
    records = Records(out / "records")
    waiting = [cell for cell in cells if not records.has(cell)]
    done = len(cells) - len(waiting)
    # on a cluster the data are the workers'
    away = {} if report_only or dask is not None else _data_not_here(waiting, data_dir)
    here = [cell for cell in waiting if cell.dataset not in away]
    if away and not here and not done:
        raise InputError("; ".join(away.values()))
    console.print(f"{_count(cells)}, {done} of them done; records go to [bold]{out}[/bold].")
    for reason in away.values():
        console.print(f"[yellow]left out[/yellow] {escape(reason)}")
    failed: dict[Cell, str] = {}
    if not report_only:
        with _watching(console) as watch:
            failed = run_grid(
                here, out, jobs=jobs, dask=dask, data_dir=data_dir, quick=quick, watch=watch
            ).failed
    for cell, reason in failed.items():
        console.print(f"[red]failed[/red] {cell}: {escape(reason)}")
    page, short = write_report(out)
    for sentence in short:
        console.print(sentence, highlight=False)
    console.print(f"The report is [bold]{page}[/bold].")
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(cells)} cells failed; their logs are in {out / 'running'}"
        )
    if away:
        raise RuntimeError(f"left out {'; '.join(away.values())}")


def _count(cells: Sequence[Cell]) -> str:
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}"


def _data_not_here(cells: list[Cell], data_dir: Path | None) -> dict[str, str]:
    """The data sets that cells want and that are not here: of how many cells, and what to do."""
    away: dict[str, str] = {}
    for dataset in dict.fromkeys(cell.dataset for cell in cells if cell.dataset in FILES):
        try:
            locate(FILES[dataset], data_dir)
        except DataNotFoundError as error:
            theirs = [cell for cell in cells if cell.dataset == dataset]
            away[dataset] = f"{_count(theirs)}: {error}"
    return away


class Display:
    """What is done of the grid, what is running and how long it may still take.

    It is computed each time it is drawn: an hour may pass between the ends of two cells.
    """

    progress: Progress | None = None

    def watch(self, progress: Progress) -> None:
        """Show this from now on."""
        self.progress = progress

    def __rich__(self) -> RenderableType:
        if self.progress is None:
            return ""
        line = RichTable.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=1.0, completed=self.progress.share, width=24),
            f"{self.progress.n_ended} of {len(self.progress.expected)} cells",
            _left(self.progress.seconds_left),
        )
        running = (Text(f"  {cell}", "dim", no_wrap=True) for cell in list(self.progress.running))
        return Group(line, *running)


@contextmanager
def _watching(console: Console) -> Iterator[Watcher]:
    """A display on a terminal, and nothing elsewhere."""
    display = Display()
    shown = Live(display, console=console, transient=True, refresh_per_second=2)
    with shown if console.is_terminal else nullcontext():
        yield display.watch


def _left(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"about {minutes} min left" if minutes else "less than a minute left"
    return f"about {hours} h {minutes:02d} min left"


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
