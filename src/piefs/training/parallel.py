"""Many trainings at once: in this process, in processes of this machine, or on a Dask cluster.

Processes are those of joblib's pool (loky), a cluster's jobs go through Dask's own executor. Both
are executors of `concurrent.futures`, so one loop serves them. (joblib's `Parallel` waits for ever
for a job that Dask has given up, and stops all jobs when one process dies.)
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, NamedTuple

from joblib.externals.loky import ProcessPoolExecutor

from piefs.errors import InputError, PiefsError
from piefs.training.runtime import keep_memory

Job = tuple[Any, ...]

MOST_DEATHS = 2
"""How many processes a job may take down, running alone, before it is given up."""
THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ENVIRONMENT = dict.fromkeys(THREADS, "1") | {"PYTHONWARNINGS": "ignore"}
"""Of a process; XLA reads NPROC, and gains more from a second process than from a second core."""
LOOK_SECONDS = 1.0
"""How often to look for workers that have joined."""


class JobError(PiefsError, RuntimeError):
    """A job failed; `details` is the traceback of the process that ran it, if there is one."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message, details)
        self.details = details

    def __str__(self) -> str:
        return self.args[0]


class Ended(NamedTuple):
    """A job with its value, or with the error that ended it."""

    job: Job
    value: Any
    error: BaseException | None

    def result(self) -> Any:
        """The value; an error is raised."""
        if self.error is not None:
            raise self.error
        return self.value


@contextmanager
def open_workers(
    function: Callable[..., Any], common: Any = None, *, n_jobs: int | None = None, dask: Any = None
) -> Iterator[Workers]:
    """Workers that run `function(common, *job)`; `common` travels to each of them once.

    They are this process, `n_jobs` processes, or the workers of a Dask cluster, given by the
    address of its scheduler or a client of it.
    """
    if dask is not None and n_jobs is not None:
        raise InputError(
            "a number of jobs is for this machine: a Dask cluster runs one on each of its workers"
        )
    if dask is not None:
        from piefs.training.cluster import Cluster

        workers = Cluster(function, common, dask)
    elif n_jobs is not None:
        workers = Processes(function, common, n_jobs)
    else:
        workers = Workers(function, common)
    try:
        yield workers
    finally:
        workers.close()


class Workers:
    """Jobs run in this process itself; the base of all workers."""

    def __init__(self, function: Callable[..., Any], common: Any) -> None:
        self.function, self.common = function, common

    @property
    def n_workers(self) -> int:
        """How many jobs run at a time."""
        return 1

    def run(self, jobs: Iterable[Job]) -> Iterator[Ended]:
        """The jobs as they end; one that fails does not stop the others.

        A job is taken from `jobs` only when there is room for it, so they may be decided late. If a
        process dies, the jobs that were running are run again, one at a time.
        """
        waiting, running = iter(jobs), {}
        try:
            while True:
                while len(running) < max(1, self.n_workers):
                    if (job := next(waiting, None)) is None:
                        break
                    running[self.submit(job)] = job
                if not running:
                    return
                done = wait(running, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED).done
                if any(map(_is_dead, done)):
                    done = wait(running).done
                    self.renew()
                for future in done:
                    job = running.pop(future)
                    yield self._alone(job) if _is_dead(future) else _ended(job, future)
        finally:
            for future in running:
                future.cancel()

    def submit(self, job: Job) -> Future[Any]:
        """Start a job; here, run it at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(self.function(self.common, *job))
        except Exception as error:
            future.set_exception(error)
        return future

    def renew(self) -> None:
        """Replace processes that have died."""

    def close(self) -> None:
        """Let the workers go; whatever still runs ends."""

    def _alone(self, job: Job) -> Ended:
        code = "?"
        for _ in range(MOST_DEATHS):
            future = self.submit(job)
            wait([future])
            if not _is_dead(future):
                return _ended(job, future)
            code = next(iter(re.findall(r"\w+\(-?\d+\)", str(future.exception()))), "?")
            self.renew()
        message = f"its process died {1 + MOST_DEATHS} times (exit code {code})"
        return Ended(job, None, JobError(message))


def _is_dead(future: Future[Any]) -> bool:
    return not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)


def _ended(job: Job, future: Future[Any]) -> Ended:
    try:
        error = future.exception()
    except CancelledError:
        error = JobError("the Dask scheduler is gone, or has cancelled the work")
    return Ended(job, None if error else future.result(), error)


def portable(error: Exception, prefix: str = "") -> Exception:
    """An error that can travel between processes: its words, without the objects it holds."""
    if isinstance(error, InputError):
        return InputError(f"{prefix}{error}")
    details = "".join(traceback.format_exception(error))
    return JobError(f"{prefix}{type(error).__name__}: {error}", details)


# --- processes of this machine -----------------------------------------------------------------


class Processes(Workers):
    """So many processes of one thread each; a dead one breaks the pool, which is then replaced."""

    def __init__(self, function: Callable[..., Any], common: Any, n_workers: int) -> None:
        super().__init__(function, common)
        self._n_workers = n_workers
        self._start()

    def _start(self) -> None:
        given = self.function, self.common
        self._pool = ProcessPoolExecutor(
            self._n_workers, env=ENVIRONMENT, initializer=_prepare, initargs=given
        )

    @property
    def n_workers(self) -> int:
        return self._n_workers

    def submit(self, job: Job) -> Future[Any]:
        try:
            return self._pool.submit(_in_process, job)
        except BrokenProcessPool:  # an idle one has died
            self.renew()
            return self._pool.submit(_in_process, job)

    def renew(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        """Kill the processes: what is to survive is in files."""
        self._pool.shutdown(wait=True, kill_workers=True)


_given: tuple[Callable[..., Any], Any]


def _prepare(*given: Any) -> None:
    """Make a new process ready; what its jobs print goes to the error stream."""
    global _given
    _given = given
    keep_memory()  # before a job starts JAX and its threads
    os.dup2(2, 1)


def _in_process(job: Job) -> Any:
    function, common = _given
    try:
        return function(common, *job)
    except Exception as error:
        raise portable(error) from None
