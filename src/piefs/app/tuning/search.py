"""Successive halving: many settings with few steps, the better ones with more.

The defaults are one of the candidates. They take part in every round, and win ties: another one has
to be better by more than the standard error of the difference, row by row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

from piefs.app.tuning.candidates import Keywords, candidate
from piefs.app.tuning.trials import Problem, check_record, run_trial
from piefs.data.files import read_json, reading, write_json
from piefs.data.folders import held
from piefs.errors import InputError
from piefs.training.batches import Samples
from piefs.training.checkpoint import data_digest
from piefs.training.parallel import Workers, open_workers

SHARES = (1 / 9, 1 / 3, 1.0)
"""The shares of the steps in the three rounds; each keeps a third of its candidates."""

N_TRIALS, FEWEST_TRIALS, MOST_TRIALS = 18, 3, 200
WHOLE_FITS_A_CANDIDATE = 1 / 3
"""What a candidate costs on average, in fits with all steps: a ninth in each of the rounds."""

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    `keywords` are the best settings, empty (but for what was fixed) where the defaults are;
    `records` hold all trials, those of the last round first in order of their loss; `gain` is by
    how much the best loss is lower than that of the defaults, and `gain_error` its standard error.
    """

    keywords: Keywords
    records: list[dict[str, Any]]
    gain: float
    gain_error: float

    @property
    def beats_defaults(self) -> bool:
        """Whether the best settings are others than the defaults."""
        return self.gain > self.gain_error


def tune(
    X: Any,
    y: Any,
    *,
    validation_data: tuple[Any, Any] | None = None,
    task: str | None = None,
    n_trials: int | None = None,
    budget_minutes: float | None = None,
    fixed: Keywords | None = None,
    standardize: bool = True,
    seed: int = 0,
    n_jobs: int | None = None,
    dask: Any = None,
    out: str | Path | None = None,
    tell: Tell = lambda stage, done, total: None,
) -> Tuned:
    """Search settings for an estimator, judged by the loss on validation rows.

    Parameters
    ----------
    X, y
        Training rows and labels, or numbers.
    validation_data
        Rows and labels to judge by; without them 15 % of the rows are set aside.
    task
        "classification" or "regression", by the values of y unless given.
    n_trials, budget_minutes
        How many candidates to try (18), or for how long; with a time, as many as it allows.
    fixed
        Keywords that all candidates have.
    n_jobs, dask
        How many processes of this machine try at a time, or the address or a client of a Dask
        scheduler whose workers do; one trial at a time, in this process, if neither is given.
    out
        Folder for a record of each trial; a second call does only what is missing.
    tell
        Called with what is being done, how many trials are done, and of how many.
    """
    if n_trials is not None and not 1 <= n_trials <= MOST_TRIALS:
        raise InputError(f"n_trials must be from 1 to {MOST_TRIALS}, not {n_trials}")
    if budget_minutes is not None and not budget_minutes > 0:
        raise InputError(f"the budget must be a number of minutes above 0, not {budget_minutes}")
    problem = _problem(X, y, validation_data, task, standardize, seed)
    n_jobs = None if n_jobs == 1 else n_jobs
    fixed = fixed or {}
    with open_workers(trial, (problem, fixed, seed), n_jobs=n_jobs, dask=dask) as workers:
        search = Search(problem, fixed, seed, workers, out, tell, budget_minutes)
        return search.run(n_trials)


def _problem(
    X: Any, y: Any, validation_data: Any, task: str | None, standardize: bool, seed: int
) -> Problem:
    X, y = np.asarray(X), np.asarray(y)
    if task is None:
        is_class = type_of_target(y) in ("binary", "multiclass") and y.dtype.kind != "f"
        task = "classification" if is_class else "regression"
    if validation_data is None:
        strata = (
            y
            if task == "classification" and np.unique(y, return_counts=True)[1].min() > 1
            else None
        )
        X, held_x, y, held_y = train_test_split(
            X, y, test_size=0.15, random_state=seed, stratify=strata
        )
        validation_data = held_x, held_y
    held = np.asarray(validation_data[0]), np.asarray(validation_data[1])
    return Problem(task, (X, y), held, standardize)


def trial(common: tuple[Problem, Keywords, int], index: int, rung: int) -> dict[str, Any]:
    """The record of a candidate in a round."""
    problem, fixed, seed = common
    return run_trial(problem, candidate(index, seed, fixed), SHARES[rung], seed)


class Search:
    """A search that knows what has been done, and does what is missing."""

    def __init__(
        self,
        problem: Problem,
        fixed: Keywords,
        seed: int,
        workers: Workers,
        out: str | Path | None,
        tell: Tell,
        budget_minutes: float | None,
    ) -> None:
        self.problem, self.fixed, self.seed, self.workers = problem, fixed, seed, workers
        self.out, self.tell = None if out is None else Path(out), tell
        self.deadline = None if budget_minutes is None else time.monotonic() + 60 * budget_minutes
        self.records: dict[tuple[int, int], dict[str, Any]] = {}

    def run(self, n_trials: int | None) -> Tuned:
        """The defaults with all steps, then the rounds; no other search writes to the folder."""
        with nullcontext() if self.out is None else held(self.out):
            return self._run(n_trials)

    def _run(self, n_trials: int | None) -> Tuned:
        self._open()
        last = len(SHARES) - 1
        self._do([0], last, "the defaults", always=True)  # whatever the time
        n = self._plan(n_trials)
        standing = list(range(1, n))
        for rung in range(len(SHARES)):
            self._do(standing, rung, f"round {rung + 1} of {len(SHARES)}")
            standing = self._best(standing, rung)[: max(len(standing) // 3, 1)]
        return self._verdict()

    def _open(self) -> None:
        """Read what is there; records of another search are refused."""
        if self.out is None:
            return
        about = json.loads(json.dumps(self._about()))
        file = self.out / "tune.json"
        if file.is_file():
            found = read_json(file, "choose another --out")
            differing = [name for name in about if found.get(name) != about[name]]
            if differing:
                raise InputError(
                    f"{self.out} holds a search with another {differing[0]}; choose another --out"
                )
            for path in sorted((self.out / "trials").glob("*.json")):
                self._read_trial(path)
        else:
            write_json(file, about)

    def _read_trial(self, path: Path) -> None:
        remedy = "remove it, and the trial is done again"
        record = read_json(path, remedy)
        with reading(path, remedy):
            index, rung = (int(part) for part in path.stem.split("-"))
            if not (0 <= index < MOST_TRIALS and 0 <= rung < len(SHARES)):
                raise ValueError("there is no such trial")
            check_record(record, len(self.problem.validation[0]))
            self.records[index, rung] = record

    def _about(self) -> dict[str, Any]:
        x, y = self.problem.train
        held_x, held_y = self.problem.validation
        labels = np.unique(np.concatenate([y, held_y]), return_inverse=True)[1]
        rows = np.concatenate([x, held_x]).astype(np.float64)
        return {
            "seed": self.seed,
            "task": self.problem.task,
            "data": data_digest(Samples(rows, labels)),
            "fixed": self.fixed,
        }

    def _plan(self, n_trials: int | None) -> int:
        """How many candidates: as asked, or as many as the time allows by that of the defaults."""
        if n_trials is not None or self.deadline is None:
            return n_trials or N_TRIALS
        a_fit = max(self.records[0, len(SHARES) - 1]["seconds"], 1e-3)
        n_fits = (self.deadline - time.monotonic()) * self.workers.n_workers / a_fit
        return int(np.clip(1 + n_fits / WHOLE_FITS_A_CANDIDATE, FEWEST_TRIALS, MOST_TRIALS))

    def _do(self, indices: list[int], rung: int, stage: str, *, always: bool = False) -> None:
        """The trials of a round that have not been done, as far as there is time."""
        missing = [index for index in indices if (index, rung) not in self.records]
        n_done = len(indices) - len(missing)
        self.tell(stage, n_done, len(indices))
        for ended in self.workers.run(self._in_time(missing, rung, always)):
            self._keep(ended.job, ended.result())
            n_done += 1
            self.tell(stage, n_done, len(indices))

    def _in_time(self, indices: list[int], rung: int, always: bool) -> Iterator[tuple[int, int]]:
        """The trials of a round, until there is no time for another."""
        for index in indices:
            if always or self.deadline is None or time.monotonic() < self.deadline:
                yield index, rung

    def _keep(self, trial: tuple[int, int], record: dict[str, Any]) -> None:
        """Write the record of a trial, whole, as it ends."""
        self.records[trial] = record
        if self.out is not None:
            index, rung = trial
            write_json(self.out / "trials" / f"{index:03d}-{rung}.json", record)

    def _best(self, indices: list[int], rung: int) -> list[int]:
        """Those of the candidates that have a loss in a round, the lowest first."""
        losses = {i: self.records[i, rung]["loss"] for i in indices if (i, rung) in self.records}
        return sorted((i for i, loss in losses.items() if loss is not None), key=losses.__getitem__)

    def _verdict(self) -> Tuned:
        """The best with all steps, and by how much it beats the defaults."""
        last = len(SHARES) - 1
        finalists = self._best([i for i, rung in self.records if rung == last], last)
        if not finalists:
            raise InputError(f"no settings could be fitted: {self.records[0, last]['error']}")
        defaults = self.records[0, last]
        winner = self.records[finalists[0], last]
        gain, error = float("inf"), 0.0
        if defaults["loss"] is not None:
            rows = np.subtract(defaults["row_losses"], winner["row_losses"])
            gain, error = float(rows.mean()), float(rows.std() / np.sqrt(len(rows)))
        if gain <= error:
            winner = defaults
        others = [record for (_, rung), record in self.records.items() if rung != last]
        ordered = [self.records[i, last] for i in finalists] + others
        tuned = Tuned(winner["keywords"], ordered, gain, error)
        if self.out is not None:
            write_json(self.out / "best.json", tuned.keywords)
        return tuned
