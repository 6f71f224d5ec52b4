"""Many trainings on the workers of a Dask cluster, one at a time on each.

The client takes the results and writes what is to be kept, so no disk is shared. Dask runs the job
of a worker that dies on another one, and gives it up after the fourth.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any

from piefs.data.files import library_versions, optional
from piefs.errors import InputError
from piefs.training.parallel import Job, Workers, portable

CONNECT_SECONDS, WORKER_SECONDS = 5, 4
"""How long to wait for a scheduler to answer, and for its first worker."""
ONE_AT_A_TIME = Lock()
"""Held by the job that a worker runs: JAX shares its cores badly between threads."""


class Cluster(Workers):
    """The workers that a scheduler has at the time; they may come and go."""

    def __init__(self, function: Callable[..., Any], common: Any, where: Any) -> None:
        super().__init__(function, common)
        self._is_own = not hasattr(where, "get_executor")
        self.client = _connected(where) if self._is_own else where
        self._executor = self.client.get_executor(pure=False)
        try:
            self._check_workers()
            self._common = self._sent(common)
        except BaseException:
            self.close()
            raise

    @property
    def n_workers(self) -> int:
        return len(self.client.nthreads())

    def submit(self, job: Job) -> Future[Any]:
        return self._executor.submit(on_worker, self.function, self._common, job)

    def close(self) -> None:
        """Cancel what is left, and leave the cluster if it was joined here."""
        if self.client.status == "running":
            self._executor.shutdown(wait=False)
        if self._is_own:
            self.client.close()

    def _check_workers(self) -> None:
        """Refuse a scheduler without workers, and workers with other versions of the libraries."""
        address = self.client.scheduler.address
        try:
            self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            raise InputError(
                f"the Dask scheduler at {address} has no workers: start some with "
                f"`dask worker {address} --nthreads 1`"
            ) from error
        found = self.client.run(refusal, library_versions(), on_error="return")
        for worker, reason in found.items():
            if reason is not None:
                hint = ": install piefs on the workers" if isinstance(reason, ImportError) else ""
                raise InputError(f"worker {worker}: {reason}{hint}")

    def _sent(self, common: Any) -> Any:
        """A future of `common` that survives its worker: the scheduler can make it again."""
        from dask import config

        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.client.submit(lambda value: value, common, pure=False)


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

    worker = f"worker {get_worker().address}: "
    try:
        with ONE_AT_A_TIME:
            return function(common, *job)
    except Exception as error:
        raise portable(error, worker) from None
