"""Settings chosen by a search on validation rows, within a budget (extra [tune]).

Optuna proposes settings near the defaults. Candidates are fitted with a ninth of the steps, the
best third of them again with a third, and the best third of those with all: separate fits, since
the learning rate follows its schedule over whatever number of steps it is given. The defaults take
part and win ties: other settings must be better by more than the standard error of the difference,
row by row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
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

KEPT = 3  # one in so many goes on
SHARES = (1 / KEPT**2, 1 / KEPT, 1.0)
"""The shares of the steps that a candidate may be fitted with, one after the other."""

ALL_STEPS = len(SHARES) - 1
N_TRIALS, MOST_TRIALS = 18, 200
ABOUT, RECORDS, BEST = "tune.json", "trials.jsonl", "best.json"
NUMBERS = ("loss", "losses_error", "score", "seconds", "share")

Tell = Callable[[str, int, int], None]


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
        Called with what is counted ("defaults", "fits" or "seconds"), how many are done, of how
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
        self.study = self.optuna.create_study(sampler=sampler)
        self.trials: dict[int, Any] = {}
        self.records: dict[tuple[int, int], Record] = {}

    def run(self, workers: Workers, n_trials: int | None, seconds: float, tell: Tell) -> Tuned:
        """The defaults with all steps, whatever the time; then others, as long as there is time."""
        begun, is_timed = time.monotonic(), seconds < np.inf
        most = n_trials or (MOST_TRIALS if is_timed else N_TRIALS)
        others = range(1, most if self.names else 1)
        at_once = KEPT**ALL_STEPS * workers.n_workers if is_timed else most
        n_fits = sum(-(-len(others) // KEPT**rung) for rung in range(len(SHARES)))

        def time_spent() -> float:
            return min(time.monotonic() - begun, seconds)

        self._resume()
        tell("defaults", min(1, len(self.records)), 1)
        for _ in self._fits(workers, [0], ALL_STEPS, lambda: True):
            pass
        for start in range(0, len(others), at_once):
            candidates: Sequence[int] = others[start : start + at_once]
            for rung in range(len(SHARES)):
                for _ in self._fits(workers, candidates, rung, lambda: time_spent() < seconds):
                    if is_timed:
                        tell("seconds", int(time_spent()), int(seconds))
                    else:
                        tell("fits", min(len(self.records) - 1, n_fits), n_fits)
                candidates = self._best_third(candidates, rung)
        return self._verdict()

    def _fits(
        self, workers: Workers, candidates: Sequence[int], rung: int, has_time: Callable[[], bool]
    ) -> Iterator[Record]:
        """Fit candidates that have no record, as long as there is time, and keep a line of each."""

        def jobs() -> Iterator[tuple[int, int, Keywords]]:
            for index in candidates:
                if (index, rung) not in self.records and has_time():
                    yield index, rung, self._keywords(index)

        for ended in workers.run(jobs()):
            index, *_ = ended.job
            record = {"trial": index, "rung": rung, "params": self._params(index)} | ended.result()
            self._take(record)
            if self.out is not None:
                with (self.out / RECORDS).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            yield record

    def _best_third(self, candidates: Sequence[int], rung: int) -> list[int]:
        """Those of the lowest losses, among candidates that could be fitted."""
        losses = {i: self.records.get((i, rung), {}).get("loss") for i in candidates}
        known = [(loss, i) for i, loss in losses.items() if loss is not None]
        return [i for _, i in sorted(known)[: -(-len(candidates) // KEPT)]]

    def _keywords(self, index: int) -> Keywords:
        """The settings of a candidate; a new one differs from the defaults in something."""
        if index and index not in self.trials:
            trial = self._asked({})
            if not drawn(trial, self.names):
                self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                trial = self._asked({f"change {self.names[index % len(self.names)]}": True})
            self.trials[index] = trial
        return (drawn(self.trials[index], self.names) if index else {}) | self.fixed

    def _params(self, index: int) -> dict[str, Any]:
        return self.trials[index].params if index else {}

    def _asked(self, params: dict[str, Any]) -> Any:
        """A candidate with the given parameters, and Optuna's for those that are not given."""
        if params:
            self.study.enqueue_trial(params)
        trial = self.study.ask()
        drawn(trial, self.names)
        return trial

    def _take(self, record: Record) -> None:
        """Keep a record; Optuna learns from the losses of the fewest steps, which all have."""
        index, rung, loss = record["trial"], record["rung"], record["loss"]
        self.records[index, rung] = record
        if rung == 0:
            failed = {"state": self.optuna.trial.TrialState.FAIL}
            self.study.tell(self.trials[index], **failed if loss is None else {"values": loss})

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
        if cut_off:  # the process was killed while it wrote this line
            files.write_bytes(path, "".join(f"{line}\n" for line in lines).encode())

    def _replay(self, record: Record) -> None:
        """Take a record of an earlier call; a ValueError or LookupError if it cannot be one."""
        index, rung = range(MOST_TRIALS)[record["trial"]], range(len(SHARES))[record["rung"]]
        record |= _outcome(record, len(self.data.validation[0]))
        if rung == 0:
            self.trials[index] = self._asked(record["params"])
        if self._params(index) != record["params"]:
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
