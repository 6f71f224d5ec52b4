"""What all workers share: jobs are taken when there is room for them, results given as they end."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from piefs.errors import InputError, PiefsError

Job = tuple[Any, ...]


class JobError(PiefsError, RuntimeError):
    """A job failed. `details` is the traceback of where it ran, if there is one."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message, details)
        self.details = details

    def __str__(self) -> str:
        return self.args[0]


def portable(error: Exception, prefix: str = "") -> Exception:
    """An error that can travel between processes: what it says, without what it holds."""
    if isinstance(error, InputError):
        return InputError(f"{prefix}{error}")
    details = "".join(traceback.format_exception(error))
    return JobError(f"{prefix}{type(error).__name__}: {error}", details)


class Ended(NamedTuple):
    """A job with its value, or with the error that ended it."""

    job: Job
    value: Any
    error: Exception | None

    def result(self) -> Any:
        """The value; an error is raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Workers(ABC):
    """Whoever runs `function(common, *job)`.

    A subclass says how many jobs it can run now, and starts them; what it starts is a future, with
    the methods `result` and `exception`.
    """

    def __init__(self, function: Callable[..., Any], common: Any) -> None:
        self.function, self.common = function, common

    def run(self, jobs: Iterable[Job]) -> Iterator[Ended]:
        """The jobs as they end, in whatever order; one that fails does not stop the others.

        A job is taken from `jobs` only when there is room for it: who gives them may decide late.
        """
        waiting, running = iter(jobs), {}
        try:
            while True:
                while self._has_room(running) and (job := next(waiting, None)) is not None:
                    running[self._start(job)] = job
                if not running:
                    return
                for future in self._wait(running):
                    job, error = running.pop(future), future.exception()
                    yield Ended(job, None if error else future.result(), error)
        finally:
            self._abandon(list(running))

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many jobs can run at a time."""

    def close(self) -> None:
        """Let go of whatever runs jobs; what still runs ends."""
        return

    def _has_room(self, running: dict[Any, Job]) -> bool:
        return len(running) < self.n_workers

    @abstractmethod
    def _start(self, job: Job) -> Any:
        """The future of a job that was handed to a free worker."""

    @abstractmethod
    def _wait(self, running: dict[Any, Job]) -> Iterable[Any]:
        """Those that have ended, after a while; maybe none."""

    def _abandon(self, running: list[Any]) -> None:
        """Stop jobs that nobody waits for any more."""
        return


class Here(Workers):
    """The process itself, one job after the other."""

    @property
    def n_workers(self) -> int:
        """One."""
        return 1

    def _start(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self.function(self.common, *job))
        except Exception as error:
            future.set_exception(error)
        return future

    def _wait(self, running: dict[Any, Job]) -> Iterable[Any]:
        return list(running)
