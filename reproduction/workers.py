"""Many trainings at once: in this process, in processes of this machine, or on a Dask cluster.

Processes are those of joblib's pool (loky), a cluster's jobs go through Dask's own executor. Both
are executors of `concurrent.futures`, so one loop serves them. (joblib's `Parallel` waits for ever
for a job that Dask has given up, and stops all jobs when one process dies.) Results travel to the
client, which writes what is to be kept, so no disk is shared. Dask runs the job of a worker that
dies on another one, and gives it up after the fourth.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any, NamedTuple

from joblib.externals.loky import ProcessPoolExecutor

from piefs.data.files import library_versions, optional
from piefs.errors import InputError, PiefsError
from reproduction.memory import keep_memory

Job = tuple[Any, ...]
MOST_DEATHS = 2  # of processes that run a job alone, before it is given up
THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ENVIRONMENT = dict.fromkeys(THREADS, "1") | {"PYTHONWARNINGS": "ignore"}
"""Of a process; XLA reads NPROC, and gains more from a second process than from a second core."""
LOOK_SECONDS = 1.0  # how often to look for workers that have joined
CONNECT_SECONDS, WORKER_SECONDS = 5, 4  # to wait for a scheduler, and for its first worker
ONE_AT_A_TIME = Lock()
"""Held by the job that a cluster's worker runs: JAX shares its cores badly between threads."""


class JobError(PiefsError, RuntimeError):
    """A job failed; `details` is the traceback of the process that ran it, if there is one."""

    details = ""


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
    with ExitStack() as stack:
        if dask is not None:
            yield Cluster(function, common, dask, stack)
        elif n_jobs is not None:
            yield Processes(function, common, n_jobs, stack)
        else:
            yield Workers(function, common)


class Workers:
    """Jobs run in this process itself; the base of all workers."""

    n_workers = 1  # how many jobs run at a time

    def __init__(self, function: Callable[..., Any], common: Any) -> None:
        self.function, self.common = function, common

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

    def _alone(self, job: Job) -> Ended:
        died = ""
        for _ in range(MOST_DEATHS):
            future = self.submit(job)
            if not _is_dead(future):
                return _ended(job, future)
            died = str(future.exception())
            self.renew()
        code = re.search(r"\w+\(-?\d+\)", died)
        message = f"its process died {1 + MOST_DEATHS} times (exit code {code and code[0]})"
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
    found = JobError(f"{prefix}{type(error).__name__}: {error}")
    found.details = "".join(traceback.format_exception(error))
    return found


class Processes(Workers):
    """So many processes of one thread each; a dead one breaks the pool, which is then replaced."""

    def __init__(
        self, function: Callable[..., Any], common: Any, n_workers: int, stack: ExitStack
    ) -> None:
        super().__init__(function, common)
        self.n_workers = n_workers
        self._start()
        stack.callback(self._kill)

    def submit(self, job: Job) -> Future[Any]:
        try:
            return self._pool.submit(_in_process, job)
        except BrokenProcessPool:  # an idle one has died
            self.renew()
            return self._pool.submit(_in_process, job)

    def renew(self) -> None:
        self._kill()
        self._start()

    def _start(self) -> None:
        about = {"initializer": _prepare, "initargs": (self.function, self.common)}
        self._pool = ProcessPoolExecutor(self.n_workers, env=ENVIRONMENT, **about)

    def _kill(self) -> None:
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


class Cluster(Workers):
    """The workers that a scheduler has at the time; they may come and go."""

    def __init__(
        self, function: Callable[..., Any], common: Any, where: Any, stack: ExitStack
    ) -> None:
        super().__init__(function, common)
        is_given = hasattr(where, "get_executor")
        self.client = where if is_given else stack.enter_context(_connected(where))
        self._check_workers()
        self._executor = self.client.get_executor(pure=False)
        stack.callback(
            lambda: self.client.status == "running" and self._executor.shutdown(wait=False)
        )
        from dask import config

        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            # As a task, and not scattered, `common` survives its worker: it can be made again.
            self._common = self.client.submit(lambda value: value, common, pure=False)

    @property
    def n_workers(self) -> int:
        return len(self.client.nthreads())

    def submit(self, job: Job) -> Future[Any]:
        return self._executor.submit(on_worker, self.function, self._common, job)

    def _check_workers(self) -> None:
        """Refuse a scheduler without workers, and workers with other versions of the libraries."""
        try:
            self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            address = self.client.scheduler.address
            raise InputError(
                f"the Dask scheduler at {address} has no workers: start some with "
                f"`dask worker {address} --nthreads 1`"
            ) from error
        found = self.client.run(refusal, library_versions(), on_error="return")
        for worker, reason in found.items():
            if reason is not None:
                hint = ": install piefs on the workers" if isinstance(reason, ImportError) else ""
                raise InputError(f"worker {worker}: {reason}{hint}")


def _connected(address: Any) -> Any:
    distributed = optional("distributed", "a Dask cluster", extra="dask")
    if not isinstance(address, str):
        raise InputError(
            f"dask takes the address of a scheduler or a distributed.Client, not {address!r}"
        )
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())}): start one "
            "with `dask scheduler`, and give the address that it prints, such as tcp://host:8786"
        ) from error


def refusal(expected: dict[str, str]) -> str | None:
    """Why this process cannot stand in for one with these versions, or None if it can."""
    found = library_versions()
    differing = [name for name in expected if found.get(name) != expected[name]]
    if not differing:
        return None
    here, there = (", ".join(f"{n} {v.get(n)}" for n in differing) for v in (found, expected))
    return f"it has {here}, and {there} is wanted: install the same versions everywhere"


def on_worker(function: Callable[..., Any], common: Any, job: Job) -> Any:
    """Run a job on a worker; an error names the worker."""
    from distributed import get_worker

    try:
        with ONE_AT_A_TIME:
            return function(common, *job)
    except Exception as error:
        raise portable(error, f"worker {get_worker().address}: ") from None
