"""The workers of a Dask cluster, one job at a time on each.

The client takes the results and writes what is to be kept, so no disk is shared. The job of a
worker that dies runs again on another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from piefs.data.models import library_versions
from piefs.errors import InputError
from piefs.training.jobs.workers import Job, JobError, Workers, portable

CONNECT_SECONDS, WORKER_SECONDS = 5, 4
"""How long to wait for the scheduler to answer, and for a first worker."""

LOOK_SECONDS = 1.0
"""How often to look for workers that have come."""

ONE_AT_A_TIME = Lock()
"""Of a worker's process: JAX shares its cores badly between jobs in threads."""


class Cluster(Workers):
    """The workers that a scheduler has at the time; they may come and go."""

    def __init__(self, function: Callable[..., Any], common: Any, where: Any) -> None:
        super().__init__(function, common)
        distributed = _distributed()
        self._is_own = not isinstance(where, distributed.Client)
        self.client = _connected(where) if self._is_own else where
        self.name = self.client.scheduler.address
        self._places: dict[Any, str] = {}
        try:
            self._await_worker()
            self._refuse_other_versions()
            self._common = self._sent(common)
        except BaseException:
            self.close()
            raise

    @property
    def n_workers(self) -> int:
        """How many workers there are now."""
        return len(self.client.nthreads())

    def close(self) -> None:
        """Leave the cluster, if it was entered here."""
        if self._is_own:
            self.client.close()

    def _await_worker(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            raise InputError(
                f"the Dask scheduler at {self.name} has no workers: start some with "
                f"`dask worker {self.name} --nthreads 1`"
            ) from error

    def _refuse_other_versions(self) -> None:
        found = self.client.run(refusal, library_versions(), on_error="return")
        for worker, reason in found.items():
            if reason is not None:
                raise InputError(_from_worker(worker, reason))

    def _sent(self, common: Any) -> Any:
        """A future of `common` that survives its worker: the scheduler can make it again."""
        from dask import config

        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.client.submit(_same, common, pure=False)

    def _idle(self) -> list[str]:
        busy = set(self._places.values())
        return [worker for worker in self.client.nthreads() if worker not in busy]

    def _has_room(self, running: dict[Any, Job]) -> bool:
        if not running:
            self._places.clear()
            self._await_worker()
        return bool(self._idle())

    def _start(self, job: Job) -> Any:
        """Hand a job to an idle worker; should it die, another one will do."""
        idle = self._idle() or list(self.client.nthreads())
        future = self.client.submit(
            at_work,
            self.function,
            self._common,
            job,
            library_versions(),
            workers=idle[:1] or None,
            allow_other_workers=True,
            pure=False,
        )
        self._places[future] = idle[0] if idle else ""
        return future

    def _wait(self, running: dict[Any, Job]) -> Iterable[Any]:
        distributed = _distributed()
        try:
            with self.client.as_current():
                ended = distributed.wait(
                    list(running), timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED"
                ).done
        except TimeoutError:
            return []
        except distributed.CancelledError as error:
            raise JobError(
                f"the Dask scheduler at {self.name} is gone, or has cancelled the work"
            ) from error
        for future in ended:
            self._places.pop(future, None)
        return ended

    def _abandon(self, running: list[Any]) -> None:
        if running and self.client.status == "running":
            self.client.cancel(running, force=True)
        self._places.clear()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            "a Dask cluster needs further packages: pip install 'piefs-learn[dask]'"
        ) from error
    return distributed


def _connected(address: Any) -> Any:
    if not isinstance(address, str):
        raise InputError(
            f"dask takes the address of a scheduler or a distributed.Client, not {address!r}"
        )
    try:
        return _distributed().Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
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


def _from_worker(worker: str, reason: Any) -> str:
    if isinstance(reason, ImportError):
        reason = f"{reason}: install piefs where the workers run"
    return f"worker {worker}: {reason}"


def _same(value: Any) -> Any:
    return value


def at_work(function: Callable[..., Any], common: Any, job: Job, versions: dict[str, str]) -> Any:
    """A job on a worker; an error says on which."""
    from distributed import get_worker

    worker = get_worker().address
    reason = refusal(versions)  # of workers that came later
    if reason is not None:
        raise InputError(_from_worker(worker, reason))
    try:
        with ONE_AT_A_TIME:
            return function(common, *job)
    except Exception as error:
        raise portable(error, f"worker {worker}: ") from None
