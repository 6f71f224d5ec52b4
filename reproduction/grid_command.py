"""`piefs reproduce`: the grid with its progress, then the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from piefs.data.fetch import FILES, locate
from piefs.errors import DataNotFoundError, InputError
from reproduction.cells import Cell, cells_of
from reproduction.grid import Watcher, run_grid
from reproduction.progress import Progress
from reproduction.records import Records
from reproduction.report import write_report


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

    It looks anew each time it is drawn: between the ends of two cells an hour may pass.
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
