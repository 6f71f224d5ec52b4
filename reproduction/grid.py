"""Many cells at a time, how far they are, and how long they may still take.

By default a process of this machine runs each cell, tied to a core; Ctrl-C ends them, and a second
call runs what is missing and continues what was cut. On a Dask cluster a cell that is cut off
starts over. Records are written here, by the one who asked for them.

Cells differ a thousandfold in cost, so counting them would say nothing: each is weighted by the
seconds it may take on one core, of which only the ratios matter once some are done.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import matplotlib

from lab.costs import step_flops
from piefs.data.files import write_bytes
from piefs.training.config import PAPER
from piefs.training.runtime import keep_compiled
from reproduction.cells import LOW_DIMENSIONAL, Cell
from reproduction.records import Records
from reproduction.runs import Made, keep, make
from reproduction.workers import JobError, open_workers

N_FEATURES = {"two-moons": 2, "circles": 2, "htru2": 8, "mnist": 784}
EMBEDDED = 512
FLOPS_A_SECOND = 5e10
"""What a core does of the arithmetic of training, as far as it is counted."""

START = 1.0
"""Seconds that pass before a cell trains."""

ON_FEW_COLUMNS = {"neuralef": 18.0, "nca": 10.0}
ON_IMAGES = {"gradient-boosting": 500.0, "lda": 5.0, "pca-lr": 5.0, "nystroem-lr": 5.0}
"""Seconds of a baseline's fit where they are not those of most."""
MOST_ON_FEW_COLUMNS, MOST_ON_IMAGES = 2.0, 130.0

BEFOREHAND = 300.0
"""Seconds of work that the guess is trusted for before the cells that have ended outweigh it."""

UNFINISHED = 0.95
"""The most that a cell under way counts for, however long it has taken."""


def expected_seconds(cell: Cell, *, quick: bool = False) -> float:
    """What a cell may take on one core; of ours with the paper's settings within a factor of 3."""
    if cell.is_piefs:
        return START + _flops(cell, quick) / FLOPS_A_SECOND
    if quick:
        return START
    if cell.dataset in LOW_DIMENSIONAL:
        return START + ON_FEW_COLUMNS.get(cell.method, MOST_ON_FEW_COLUMNS)
    return START + ON_IMAGES.get(cell.method, MOST_ON_IMAGES)


def _flops(cell: Cell, quick: bool) -> float:
    settings = vars(PAPER) | cell.keywords(quick=quick)
    n_features = N_FEATURES.get(cell.dataset, EMBEDDED)
    metric = cell.method.removeprefix("piefs-")
    of_a_step = step_flops(n_features, settings["batch_size"], metric, merged=True)
    return of_a_step * settings["n_components"] * settings["steps_per_component"]


@dataclass
class Progress:
    """What a display needs to know."""

    expected: Mapping[Cell, float]
    done: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    running: dict[Cell, float] = field(default_factory=dict)
    """The cells that are worked on, and since when."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._taken, self._at_a_time = 0.0, 1

    def begin(self, cell: Cell) -> None:
        """The cell is worked on from now."""
        self.running[cell] = self.clock()
        self._at_a_time = max(self._at_a_time, len(self.running))

    def end(self, cell: Cell, why_failed: str | None = None) -> None:
        """The cell is done, or has failed."""
        self._taken += self.clock() - self.running[cell]
        if why_failed is None:
            self.done.append(cell)
        else:
            self.failed[cell] = why_failed
        del self.running[cell]

    @property
    def n_ended(self) -> int:
        """How many cells are done or have failed."""
        return len(self.done) + len(self.failed)

    @property
    def share(self) -> float:
        """Of the work, what has been done."""
        whole = sum(self.expected.values())
        return 1 - sum(self._left().values()) / whole if whole else 1.0

    @property
    def seconds_left(self) -> float:
        """At the pace so far, so many at a time, and not before the longest cell can be done."""
        left = self._left().values()
        return max(sum(left) / self._at_a_time, max(left, default=0.0)) / self._pace()

    def _pace(self) -> float:
        """Expected seconds that a second brings, by the cells that have ended."""
        ended = sum(self.expected[cell] for cell in (*self.done, *self.failed))
        return (ended + BEFOREHAND) / (self._taken + BEFOREHAND)

    def _left(self) -> dict[Cell, float]:
        """Expected seconds of each cell that has not ended, less what is under way."""
        ended, now, pace = {*self.done, *self.failed}, self.clock(), self._pace()
        left = {cell: seconds for cell, seconds in self.expected.items() if cell not in ended}
        for cell, since in list(self.running.items()):  # displays have a thread of their own
            if cell in left:
                left[cell] -= min((now - since) * pace, UNFINISHED * self.expected[cell])
        return left


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
