"""Many cells at a time, each record on disk as soon as it is there.

By default each runs in a process of this machine with one thread; Ctrl-C ends them, and a second
call does what is missing and continues what was cut. On a Dask cluster a cell that is cut off
starts over. Records are written here, by the one who asked for them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib
import matplotlib

from piefs.data.files import write_bytes
from piefs.training.parallel import JobError, open_workers
from piefs.training.runtime import keep_compiled
from reproduction.cells import Cell
from reproduction.progress import Progress, expected_seconds
from reproduction.records import Records
from reproduction.work import Made, keep, make

Watcher = Callable[[Progress], None]


def run_grid(
    cells: Sequence[Cell],
    results: str | Path,
    *,
    jobs: int | None = None,
    dask: Any = None,
    data_dir: str | Path | None = None,
    quick: bool = False,
    watch: Watcher = lambda progress: None,
) -> Progress:
    """Make the records of all cells that have none; one that fails does not stop the others.

    `jobs` of them at a time on this machine, as many as there are cores unless given; or, with the
    address or a client of a Dask scheduler, one on each of its workers.
    """
    results, has_record = Path(results), Records(Path(results) / "records").has
    waiting = [cell for cell in cells if not has_record(cell)]
    progress = Progress({cell: expected_seconds(cell, quick=quick) for cell in waiting})
    if not waiting:
        return progress
    n_jobs = (jobs or joblib.cpu_count()) if dask is None else jobs
    running = (results / "running").absolute() if dask is None else None
    common = {"data_dir": _absolute(data_dir, dask), "quick": quick, "running": running}
    with open_workers(made, common, n_jobs=n_jobs, dask=dask) as workers:
        for ended in workers.run(_begun(waiting, progress, watch)):
            (cell,) = ended.job
            if ended.error is None:
                keep(cell, ended.value, results)
                progress.end(cell)
            else:
                _write_log(cell, ended.error, results)
                progress.end(cell, " ".join(str(ended.error).split()))
            watch(progress)
    return progress


def _absolute(data_dir: str | Path | None, dask: Any) -> str | None:
    """A folder of data by its full path; on a cluster it is the workers' and stays as given."""
    if data_dir is None or dask is not None:
        return None if data_dir is None else str(data_dir)
    return str(Path(data_dir).absolute())


def _begun(cells: list[Cell], progress: Progress, watch: Watcher) -> Iterator[tuple[Cell]]:
    """The cells, each counted as running when it is asked for."""
    for cell in cells:
        progress.begin(cell)
        watch(progress)
        yield (cell,)


def made(common: dict[str, Any], cell: Cell) -> Made:
    """What a worker gives back of a cell. Without a folder to run in, it leaves nothing behind."""
    matplotlib.use("agg")  # no windows, which a thread of a worker could not open
    keep_compiled()
    keywords = dict(common)
    running = keywords.pop("running")
    if running is not None:
        return make(cell, running, **keywords)
    with tempfile.TemporaryDirectory(prefix="piefs-") as folder:
        return make(cell, Path(folder), **keywords)


def _write_log(cell: Cell, error: Exception, results: Path) -> None:
    details = error.details if isinstance(error, JobError) else ""
    log = results / "running" / f"{str(cell).replace('/', '.')}.log"
    write_bytes(log, f"{details}{error}\n".encode())
