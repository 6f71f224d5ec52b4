"""Many cells, one process a core, each record on disk as soon as it is there.

XLA gains less from a second core than a second process does, so every worker is tied to a core of
its own. Ctrl-C ends the workers; a second call does what is missing and continues what was cut.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from piefs.paper.cells import Cell
from piefs.paper.records import Records

POLL_SECONDS = 0.2


@dataclass
class Progress:
    """What a display needs to know."""

    total: int
    done: list[Cell] = field(default_factory=list)
    running: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float | None:
        """By the mean time of the cells so far; None before the first is done."""
        if not self.done:
            return None
        elapsed = time.monotonic() - self.started
        return elapsed / len(self.done) * (self.total - len(self.done) - len(self.failed))


Watcher = Callable[[Progress], None]


@dataclass
class _Worker:
    cells: list[Cell]
    process: subprocess.Popen[bytes]
    log: Path


def run_grid(
    cells: Sequence[Cell],
    results: str | Path,
    *,
    jobs: int | None = None,
    data_dir: str | Path | None = None,
    quick: bool = False,
    at_once: int = 1,
    watch: Watcher = lambda progress: None,
) -> Progress:
    """Make the records of all cells that have none; one that fails does not stop the others.

    A process works on `at_once` cells, one after the other: more than one where starting a process
    takes longer than a cell does.
    """
    results, records = Path(results), Records(Path(results) / "records")
    waiting = [cell for cell in cells if not records.has(cell)]
    progress = Progress(total=len(waiting))
    cores = _cores()
    free = [cores[i % len(cores)] for i in range(jobs or len(cores))]
    workers: dict[int, tuple[int, _Worker]] = {}
    try:
        while waiting or workers:
            while waiting and free:
                core, chosen, waiting = free.pop(0), waiting[:at_once], waiting[at_once:]
                worker = _start(chosen, results, core, data_dir, quick)
                workers[worker.process.pid] = (core, worker)
                progress.running += chosen
            for pid, (core, worker) in list(workers.items()):
                ended = worker.process.poll() is not None
                _count_done(worker, records, progress)  # after the poll: no record is missed
                if ended:
                    del workers[pid]
                    free.append(core)
                    _count_failed(worker, progress)
            watch(progress)
            time.sleep(POLL_SECONDS)
    finally:
        for _, worker in workers.values():
            worker.process.send_signal(signal.SIGINT)
        for _, worker in workers.values():
            worker.process.wait()
    return progress


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _start(
    cells: list[Cell], results: Path, core: int, data_dir: str | Path | None, quick: bool
) -> _Worker:
    """A worker in a session of its own, so that Ctrl-C reaches it through us alone."""
    command = [
        sys.executable,
        "-m",
        "piefs.paper.work",
        *map(str, cells),
        "--results",
        str(results),
    ]
    command += ["--data-dir", str(data_dir)] if data_dir else []
    command += ["--quick"] if quick else []
    log = results / "running" / f"{str(cells[0]).replace('/', '.')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, {core})
    return _Worker(list(cells), process, log)


def _count_done(worker: _Worker, records: Records, progress: Progress) -> None:
    """Count those of a worker's cells whose records are there by now."""
    for cell in [cell for cell in worker.cells if records.has(cell)]:
        worker.cells.remove(cell)
        progress.running.remove(cell)
        progress.done.append(cell)


def _count_failed(worker: _Worker, progress: Progress) -> None:
    """Count what an ended worker leaves undone, with its last words."""
    lines = worker.log.read_text(errors="replace").strip().splitlines()
    for cell in worker.cells:
        said = [line for line in lines if line.startswith(f"{cell}: ")] or lines[-1:]
        progress.running.remove(cell)
        progress.failed[cell] = (said or [f"exit {worker.process.returncode}"])[-1]
    if not worker.cells:
        worker.log.unlink(missing_ok=True)
