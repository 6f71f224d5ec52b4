"""Settings chosen by a search on validation rows, within a budget (extra [tune]).

Optuna proposes settings near the defaults. Each candidate is fitted with a ninth of the steps, the
better third again with a third, and the best of those with all: separate fits, since the learning
rate follows its schedule over whatever number of steps it is given. The defaults take part and win
ties: other settings must be better by more than the standard error of the difference, row by row.
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

from piefs.app.trials import Keywords, Record, TuningData, drawn, open_to_choice, run_trial
from piefs.app.trials import tuning_data as rows_of
from piefs.data import files
from piefs.data.files import bounded_text, held, parse_json, read_document, reading
from piefs.errors import InputError
from piefs.training.parallel import Workers, open_workers

REDUCTION = 3
SHARES = (1 / REDUCTION**2, 1 / REDUCTION, 1.0)
"""The shares of the steps that a candidate may be fitted with, one after the other."""

ALL_STEPS = len(SHARES) - 1
N_TRIALS, MOST_TRIALS = 18, 200
ABOUT, RECORDS, BEST = "tune.json", "trials.jsonl", "best.json"
NUMBERS = ("loss", "losses_error", "score", "seconds", "share")

Tell = Callable[[str, int, int], None]
Job = tuple[int, int, Keywords]  # a candidate, the share of its steps, its keywords


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    `keywords` are the best settings, none but the fixed ones if those are the defaults; `records`
    hold all fits, those with all steps first, in order of their loss; `gain` is by how much the
    best loss is lower than that of the defaults, and `gain_error` its standard error.
    """

    keywords: Keywords
    records: list[Record]
    gain: float
    gain_error: float

    @property
    def beats_defaults(self) -> bool:
        """Whether the best settings differ from the defaults."""
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
        How many settings to try, the defaults included (18 if there is no budget), and for how
        long.
    fixed
        Keywords that all candidates have.
    n_jobs, dask
        How many processes of this machine try at a time, or the address or a client of a Dask
        scheduler whose workers do; one trial at a time, in this process, if neither is given.
    out
        Folder for a record of each fit; a second call does only what is missing.
    tell
        Called with what is counted ("defaults", "trials" or "seconds"), how many are done, of how
        many.
    """
    if n_trials is not None and not 1 <= n_trials <= MOST_TRIALS:
        raise InputError(f"n_trials must be from 1 to {MOST_TRIALS}, not {n_trials}")
    if budget_minutes is not None and not budget_minutes > 0:
        raise InputError(f"the budget must be a number of minutes above 0, not {budget_minutes}")
    data = rows_of(X, y, validation_data, task, standardize, seed)
    most = n_trials or (N_TRIALS if budget_minutes is None else MOST_TRIALS)
    folder = None if out is None else Path(out)
    search = Search(data, fixed or {}, seed, folder)
    n_jobs = None if n_jobs == 1 else n_jobs
    with (
        open_workers(candidate_fit, (data, seed), n_jobs=n_jobs, dask=dask) as workers,
        nullcontext() if folder is None else held(folder),  # no folder if nobody works
    ):
        return search.run(workers, most, 60 * (budget_minutes or np.inf), tell)


def candidate_fit(
    common: tuple[TuningData, int], index: int, rung: int, keywords: Keywords
) -> Record:
    """The record of a fit: the job that a worker does."""
    data, seed = common
    return run_trial(data, keywords, SHARES[rung], seed)


class Search:
    """A search that knows what has been done, and does what is missing."""

    def __init__(self, data: TuningData, fixed: Keywords, seed: int, out: Path | None) -> None:
        self.data, self.fixed, self.seed, self.out = data, fixed, seed, out
        self.names = open_to_choice(fixed)
        self.optuna = files.optional("optuna", "a search for settings", "tune")
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        sampler = self.optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        pruner = self.optuna.pruners.SuccessiveHalvingPruner(1, REDUCTION)
        self.study = self.optuna.create_study(sampler=sampler, pruner=pruner)
        self.trials: list[Any] = []
        self.waiting: list[tuple[int, int]] = []  # candidates that go on, and with which share
        self.records: dict[tuple[int, int], Record] = {}
        self.n_ended = 0

    def run(self, workers: Workers, n_trials: int, seconds: float, tell: Tell) -> Tuned:
        """The defaults with all steps, whatever the time; then others, as long as there is time."""
        begun = time.monotonic()
        self._resume()
        tell("defaults", len(self.trials[:1]), 1)
        if not self.trials:
            self.trials.append(self._asked({f"change {name}": False for name in self.names}))
            self.waiting.append((0, ALL_STEPS))
            for ended in workers.run([self._next()]):
                self._keep(ended.job, ended.result())

        def is_over() -> bool:
            has_more = self.waiting or (self.names and len(self.trials) < n_trials)
            return not has_more or time.monotonic() - begun >= seconds

        def jobs() -> Iterator[Job]:
            while not is_over():
                yield self._next()

        while not is_over():
            for ended in workers.run(jobs()):
                self._keep(ended.job, ended.result())
                if seconds < np.inf:
                    tell("seconds", int(min(time.monotonic() - begun, seconds)), int(seconds))
                else:
                    tell("trials", self.n_ended, n_trials)
        return self._verdict()

    def _next(self) -> Job:
        """A candidate that goes on, or a new one with the fewest steps."""
        if not self.waiting:
            self.trials.append(self._proposed(len(self.trials)))
            self.waiting.append((len(self.trials) - 1, 0))
        index, rung = self.waiting.pop(0)
        return index, rung, self._keywords(index)

    def _keywords(self, index: int) -> Keywords:
        return drawn(self.trials[index], self.names) | self.fixed

    def _proposed(self, index: int) -> Any:
        """A new candidate, which differs from the defaults in something."""
        trial = self._asked({})
        if drawn(trial, self.names):
            return trial
        self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        return self._asked({f"change {self.names[index % len(self.names)]}": True})

    def _asked(self, params: dict[str, Any]) -> Any:
        """A candidate with the given parameters, and Optuna's for those that are not given."""
        if params:
            self.study.enqueue_trial(params)
        trial = self.study.ask()
        drawn(trial, self.names)
        return trial

    def _keep(self, job: Job, record: Record) -> None:
        """Write the record of a fit, a line, and take it into account."""
        index, rung, _ = job
        record = {"trial": index, "rung": rung, "params": self.trials[index].params} | record
        self._take(record)
        if self.out is not None:
            with (self.out / RECORDS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def _take(self, record: Record) -> None:
        """Tell Optuna of a loss; a candidate among the best third so far goes on."""
        index, rung, loss = record["trial"], record["rung"], record["loss"]
        trial, state = self.trials[index], self.optuna.trial.TrialState
        self.records[index, rung] = record
        if loss is None:
            self.study.tell(trial, state=state.FAIL)
        elif rung == ALL_STEPS:
            self.study.tell(trial, loss)
        else:
            trial.report(loss, REDUCTION**rung)
            if not trial.should_prune():
                self.waiting.append((index, rung + 1))
                return
            self.study.tell(trial, state=state.PRUNED)
        self.n_ended += 1

    def _resume(self) -> None:
        """Read what is there; records of another search are refused."""
        if self.out is None:
            return
        about = {"seed": self.seed, "task": self.data.task, "data": self.data.digest()}
        about = json.loads(json.dumps(about | {"fixed": self.fixed}))
        if not (self.out / ABOUT).is_file():
            return files.write_json(self.out / ABOUT, about)
        found = read_document(self.out / ABOUT, "choose another --out")
        for name in about:
            if found.get(name) != about[name]:
                raise InputError(
                    f"{self.out} holds a search with another {name}; choose another --out"
                )
        path = self.out / RECORDS
        if not path.is_file():
            return
        with reading(path, "remove it, and the search starts over"):
            *lines, cut_off = bounded_text(path).split("\n")
            for line in lines:
                self._replay(parse_json(line))
        for index, trial in enumerate(self.trials):
            if trial is None:
                self.trials[index] = self._proposed(index)
                self.waiting.append((index, 0))
        if cut_off:  # the process was killed while it wrote this line
            files.write_bytes(path, "".join(f"{line}\n" for line in lines).encode())

    def _replay(self, record: Record) -> None:
        """Take a record of an earlier call; a ValueError or LookupError if it cannot be one."""
        index, rung = record["trial"], record["rung"]
        record |= _outcome(record, len(self.data.validation[0]))
        if rung == (0 if index else ALL_STEPS):  # its first fit; others may have been under way
            self.trials += [None] * (range(MOST_TRIALS)[index] + 1 - len(self.trials))
            self.trials[index] = self._asked(record["params"])
        else:
            self.waiting.remove((index, rung))
        if self.trials[index].params != record["params"]:
            raise ValueError("these are not the settings of this search")
        self._take(record | {"keywords": self._keywords(index)})

    def _verdict(self) -> Tuned:
        """The best with all steps, and by how much it beats the defaults."""
        whole = [record for (_, rung), record in self.records.items() if rung == ALL_STEPS]
        others = [record for (_, rung), record in self.records.items() if rung < ALL_STEPS]
        defaults = self.records[0, ALL_STEPS]
        finalists = sorted((r for r in whole if r["loss"] is not None), key=lambda r: r["loss"])
        if not finalists:
            raise InputError(f"no settings could be fitted: {defaults['error']}")
        winner, gain, error = finalists[0], float("inf"), 0.0
        if defaults["loss"] is not None:
            rows = np.subtract(defaults["row_losses"], winner["row_losses"])
            gain, error = float(rows.mean()), float(rows.std() / np.sqrt(len(rows)))
        keywords = winner["keywords"] if gain > error else defaults["keywords"]
        if self.out is not None:
            files.write_json(self.out / BEST, keywords)
        return Tuned(keywords, finalists + others, gain, error)


def _outcome(record: Record, n_rows: int) -> Record:
    """The losses of a record as numbers, or why it has none."""
    if record["loss"] is None:
        return {"error": str(record["error"])}
    rows = np.array(record["row_losses"], float).reshape(n_rows)
    return {name: float(record[name]) for name in NUMBERS} | {"row_losses": rows.tolist()}
