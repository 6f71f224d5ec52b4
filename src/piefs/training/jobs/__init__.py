"""Independent jobs, and their results as they end: in this process, on this machine, on a cluster.

`open_workers` is the one way to run many trainings; who runs them decides only where and how many
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from piefs.errors import InputError
from piefs.training.jobs.processes import Processes, usable_cores
from piefs.training.jobs.workers import Ended, Here, JobError, Workers

__all__ = ["Ended", "JobError", "Workers", "open_workers", "usable_cores"]


@contextmanager
def open_workers(
    function: Callable[..., Any],
    common: Any = None,
    *,
    n_jobs: int | None = None,
    dask: Any = None,
) -> Iterator[Workers]:
    """Workers that run `function(common, *job)`; `common` travels to each of them once.

    Without a number they are this process itself, with one as many processes, and with the
    address of a Dask scheduler, or a client of it, that cluster's workers.
    """
    if dask is not None and n_jobs is not None:
        raise InputError(
            "a number of jobs is for this machine: a Dask cluster has one at a time on each worker"
        )
    workers = _workers(function, common, n_jobs, dask)
    try:
        yield workers
    finally:
        workers.close()


def _workers(function: Callable[..., Any], common: Any, n_jobs: int | None, dask: Any) -> Workers:
    if dask is not None:
        from piefs.training.jobs.cluster import Cluster

        return Cluster(function, common, dask)
    return Here(function, common) if n_jobs is None else Processes(function, common, n_jobs)
