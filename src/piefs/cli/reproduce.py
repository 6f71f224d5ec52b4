"""`piefs reproduce`: the grid with its progress, then the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from piefs.datasets.files import FILES, locate
from piefs.errors import DataNotFoundError
from piefs.paper.cells import Cell, cells_of
from piefs.paper.grid import Progress, Watcher, run_grid
from piefs.paper.records import Records
from piefs.paper.report import write_report


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
    records = Records(out / "records")
    waiting = [cell for cell in cells if not records.has(cell)]
    done = len(cells) - len(waiting)
    console.print(f"{_count(cells)}, {done} of them done; records go to [bold]{out}[/bold].")
    failed: dict[Cell, str] = {}
    if not report_only:
        if dask is None:  # else the data are the workers'
            waiting = _whose_data_are_here(waiting, data_dir, console)
        with _watching(console) as watch:
            progress = run_grid(
                waiting,
                out,
                jobs=jobs,
                dask=dask,
                data_dir=data_dir,
                quick=quick,
                watch=watch,
            )
        failed = progress.failed
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


def _count(cells: Sequence[Cell]) -> str:
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}"


def _whose_data_are_here(cells: list[Cell], data_dir: Path | None, console: Console) -> list[Cell]:
    """The cells that can be made; what the others lack is said once, before any work."""
    away: dict[str, DataNotFoundError] = {}
    for dataset in {cell.dataset for cell in cells} & FILES.keys():
        try:
            locate(FILES[dataset], data_dir)
        except DataNotFoundError as error:
            away[dataset] = error
    here = [cell for cell in cells if cell.dataset not in away]
    if away and not here:
        raise away[cells[0].dataset]
    for dataset, error in sorted(away.items()):
        left_out = _count([cell for cell in cells if cell.dataset == dataset])
        console.print(f"[yellow]left out[/yellow] {left_out}: {escape(str(error))}")
    return here


@contextmanager
def _watching(console: Console) -> Iterator[Watcher]:
    """A display of what is done, what is running and how long it may still take."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, left="")

        def watch(progress: Progress) -> None:
            running = ", ".join(map(str, progress.running)) or "waiting"
            bar.update(
                task,
                total=progress.total,
                completed=len(progress.done) + len(progress.failed),
                description=running,
                left=_left(progress.seconds_left),
            )

        yield watch


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes:02d} min left" if hours else f"about {minutes} min left"
