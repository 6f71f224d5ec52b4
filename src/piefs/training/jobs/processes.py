"""Processes of this machine, each tied to a core of its own.

XLA gains less from a second core than a second process does. A process takes one job after the
other, as starting one takes longer than a small job does; one that dies is replaced, and its job
fails alone.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock
from typing import Any

import cloudpickle

from piefs.training.jobs.workers import Job, JobError, Workers

LAST_WORDS = 4096  # bytes at the end of what a process printed, in which its last line is


def usable_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Processes(Workers):
    """So many processes; a thread waits for each of them."""

    def __init__(self, function: Callable[..., Any], common: Any, n_workers: int) -> None:
        super().__init__(function, common)
        cores, given = usable_cores(), cloudpickle.dumps((function, common))
        self._all = [Process(cores[i % len(cores)], given) for i in range(n_workers)]
        self._idle = list(self._all)
        self._threads = ThreadPoolExecutor(n_workers)

    @property
    def n_workers(self) -> int:
        """How many processes there are."""
        return len(self._all)

    def close(self) -> None:
        """End the processes, those at work as Ctrl-C would."""
        for process in self._all:
            process.interrupt()
        self._threads.shutdown()
        for process in self._all:
            process.close()

    def _start(self, job: Job) -> Future[Any]:
        return self._threads.submit(self._call, self._idle.pop(0), job)

    def _call(self, process: Process, job: Job) -> Any:
        try:
            return process.call(job)
        finally:
            self._idle.append(process)

    def _has_room(self, running: dict[Any, Job]) -> bool:
        return bool(self._idle)

    def _wait(self, running: dict[Any, Job]) -> Iterable[Any]:
        return wait(running, return_when=FIRST_COMPLETED).done

    def _abandon(self, running: list[Any]) -> None:
        if running:
            self.close()


class Process:
    """A process that answers jobs, started with the first and again after it has died."""

    def __init__(self, core: int, given: bytes) -> None:
        self.core, self.given = core, given
        self._process: subprocess.Popen[bytes] | None = None
        self._is_busy = self._is_over = False
        self._starting = Lock()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)

    def call(self, job: Job) -> Any:
        """What the function gives for a job."""
        message = cloudpickle.dumps(job)
        with self._starting:
            if self._is_over:
                raise JobError("the work was ended before it began")
            if self._process is None:
                self._process, message = self._started(), self.given + message
            process, self._is_busy = self._process, True
        try:
            value, error = _asked(process, message)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._process = None
            raise JobError(
                f"its process ended with {_ended(process)}{self._last_words()}"
            ) from None
        finally:
            self._is_busy = False
        if error is not None:
            raise error
        return value

    def interrupt(self) -> None:
        """Begin nothing more, and end what is being worked on."""
        with self._starting:
            self._is_over = True
            if self._process is not None and self._is_busy:
                self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End the process, which has nothing left to do."""
        if self._process is not None:
            _ended(self._process)
            self._process = None
        self._said.close()

    def _started(self) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that Ctrl-C reaches it through us alone."""
        process = subprocess.Popen(
            [sys.executable, "-m", "piefs.training.jobs.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {self.core})
        return process

    def _last_words(self) -> str:
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - LAST_WORDS))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""


def _asked(process: subprocess.Popen[bytes], message: bytes) -> tuple[Any, Exception | None]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message)
    process.stdin.flush()
    return pickle.load(process.stdout)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that gets nothing more to do."""
    with suppress(BrokenPipeError), process:  # which closes its pipes, and waits
        pass
    return process.wait()
