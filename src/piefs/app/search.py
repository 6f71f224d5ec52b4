"""Settings chosen by a search on validation rows, within a budget (extra [tune]).

Optuna proposes settings near the defaults, in rounds of nine for each worker. They are fitted with
a ninth of the steps, the best third again with a third, and the best third of those with all:
separate fits, since the learning rate follows its schedule over whatever number of steps it is
given. The defaults take part and win ties: other settings must be better by more than the standard
error of the difference, row by row. A search is the same each time, so one that was cut off takes
the fits that it finds in its folder, and does the rest.
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

from piefs.app.trials import (
    Keywords,
    Record,
    TuningData,
    drawn,
    fitted,
    open_to_choice,
    tuning_data,
)
from piefs.data import files
from piefs.data.files import bounded_text, held, parse_json, read_document, reading
from piefs.errors import InputError
from piefs.training.parallel import Workers, open_workers

Tell = Callable[[str, int, int], None]

KEPT, ROUND = 3, 9  # one in so many goes on; how many are asked for at a time, for each worker
SHARES = (1 / 9, 1 / 3, 1.0)
"""The shares of the steps that a candidate may be fitted with, one after the other."""

N_TRIALS, MOST_TRIALS = 18, 200
ABOUT, RECORDS, BEST = "tune.json", "trials.jsonl", "best.json"


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
    tell: Tell = lambda what, done, total: None,
) -> Tuned:
    """Search settings for an estimator, judged by the loss on validation rows.

    Parameters
    ----------
    X, y, validation_data
        Training rows and labels, or numbers; the same to judge by, else 15 % of the rows.
    task
        "classification" or "regression", by the values of y unless given.
    n_trials, budget_minutes
        How many settings to try (18 if there is no budget), and for how long.
    fixed
        Keywords that all candidates have.
    n_jobs, dask
        How many processes try at a time, or a client or the address of a Dask scheduler.
    out
        Folder for a record of each fit; a second call does only what is missing.
    tell
        Called with what is counted, how much of it is done, and of how much.
    """
    if n_trials is not None and not 1 <= n_trials <= MOST_TRIALS:
        raise InputError(f"n_trials must be from 1 to {MOST_TRIALS}, not {n_trials}")
    if budget_minutes is not None and not budget_minutes > 0:
        raise InputError(f"the budget must be a number of minutes above 0, not {budget_minutes}")
    keywords = {"standardize": standardize, **(fixed or {}), "random_state": seed}
    data = tuning_data(X, y, validation_data, task, keywords)
    most = n_trials or (N_TRIALS if budget_minutes is None else MOST_TRIALS)
    folder, n_jobs = None if out is None else Path(out), None if n_jobs == 1 else n_jobs
    search = Search(data, fixed or {}, seed, folder)
    with (
        open_workers(fitted, data, n_jobs=n_jobs, dask=dask) as workers,
        nullcontext() if folder is None else held(folder),  # no folder if nobody works
    ):
        search.resume()
        search.run(workers, most, 60 * (budget_minutes or np.inf), tell)
        return search.verdict()


class Search:
    """A search that knows what has been fitted, by settings and share of the steps."""

    def __init__(self, data: TuningData, fixed: Keywords, seed: int, out: Path | None) -> None:
        self.data, self.fixed, self.out = data, fixed, out
        self.names, self.records = open_to_choice(fixed), dict[tuple[str, float], Record]()
        optuna = files.optional("optuna", "a search for settings", "tune")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(n_startup_trials=ROUND, seed=seed, constant_liar=True)
        self.study, self.failed = optuna.create_study(sampler=sampler), optuna.trial.TrialState.FAIL

    def run(self, workers: Workers, most: int, seconds: float, tell: Tell) -> None:
        """The defaults with all steps, whatever the time; then others, as long as there is time."""
        begun, size = time.monotonic(), ROUND * workers.n_workers
        n_others = most - 1 if self.names else 0
        rounds = [min(size, n_others - start) for start in range(0, n_others, size)]
        n_fits = sum(n + -(-n // KEPT) + -(-n // KEPT**2) for n in rounds)
        tell("defaults", min(1, len(self.records)), 1)
        list(self._fits(workers, [{}], 1.0, np.inf))
        for n in rounds:
            if time.monotonic() >= begun + seconds:
                return
            trials = [self._asked() for _ in range(n)]
            candidates = [drawn(trial, self.names) for trial in trials]
            for share in SHARES:
                for _ in self._fits(workers, candidates, share, begun + seconds):
                    if seconds < np.inf:
                        spent = min(time.monotonic() - begun, seconds)
                        tell("seconds", int(spent), int(seconds))
                    else:
                        tell("fits", min(len(self.records) - 1, n_fits), n_fits)
                losses = [self.records.get(_key(one, share), {}).get("loss") for one in candidates]
                if share == SHARES[0]:  # which all have: Optuna learns from these
                    for trial, loss in zip(trials, losses, strict=True):
                        self.study.tell(trial, loss, state=self.failed if loss is None else None)
                order = sorted((loss, i) for i, loss in enumerate(losses) if loss is not None)
                candidates = [candidates[i] for _, i in order[: -(-len(candidates) // KEPT)]]

    def _asked(self) -> Any:
        """A candidate that differs from the defaults in something."""
        trial = self.study.ask()
        if not drawn(trial, self.names):
            self.study.tell(trial, state=self.failed)
            self.study.enqueue_trial({f"change {self.names[trial.number % len(self.names)]}": True})
            trial = self.study.ask()
        return trial

    def _fits(
        self, workers: Workers, candidates: list[Keywords], share: float, deadline: float
    ) -> Iterator[Record]:
        """Fit candidates that have no record, as long as there is time, and keep a line of each."""
        missing = {_key(one, share): one for one in candidates}
        jobs = ((one, share) for key, one in missing.items() if key not in self.records)
        for ended in workers.run(job for job in jobs if time.monotonic() < deadline):
            record = self.records[_key(*ended.job)] = ended.result()
            if self.out is not None:
                with (self.out / RECORDS).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            yield record

    def resume(self) -> None:
        """Read what is there; records of another search are refused."""
        if self.out is None:
            return
        about, records = self.out / ABOUT, self.out / RECORDS
        if not about.is_file():
            return files.write_json(about, {"search": self.data.digest()})
        if read_document(about, "choose another --out").get("search") != self.data.digest():
            raise InputError(
                f"{self.out} holds another search, of other rows, seed or fixed settings; choose "
                "another --out"
            )
        if not records.is_file():
            return
        with reading(records, "remove it, and the search starts over"):
            *lines, cut_off = bounded_text(records).split("\n")
            for line in lines:
                record = _checked(parse_json(line), len(self.data.validation[0]))
                self.records[_key(record["keywords"], record["share"])] = record
        if cut_off:  # the process was killed while it wrote this line
            files.write_bytes(records, "".join(f"{line}\n" for line in lines).encode())

    def verdict(self) -> Tuned:
        """The best with all steps, and by how much it beats the defaults."""
        records = list(self.records.values())
        whole = [one for one in records if one["share"] == 1 and one["loss"] is not None]
        finalists, defaults = sorted(whole, key=lambda one: one["loss"]), self.records[_key({}, 1)]
        if not finalists:
            raise InputError(f"no settings could be fitted: {defaults['error']}")
        winner, gain, error = finalists[0], float("inf"), 0.0
        if defaults["loss"] is not None:
            rows = np.subtract(defaults["row_losses"], winner["row_losses"])
            gain, error = float(rows.mean()), float(rows.std() / np.sqrt(len(rows)))
        keywords = self.fixed | (winner["keywords"] if gain > error else {})
        if self.out is not None:
            files.write_json(self.out / BEST, keywords)
        others = [record for record in records if record["share"] < 1]
        return Tuned(keywords, finalists + others, gain, error)


def _key(keywords: Keywords, share: float) -> tuple[str, float]:
    return json.dumps(keywords, sort_keys=True), share


def _checked(record: Record, n_rows: int) -> Record:
    """A record of an earlier call; a ValueError or LookupError if it cannot be one."""
    if not isinstance(record["keywords"], dict) or record["share"] not in SHARES:
        raise ValueError("these are not the settings of this search")
    if record["loss"] is None:
        return record | {"error": str(record["error"])}
    numbers = {name: float(record[name]) for name in ("loss", "losses_error", "score", "seconds")}
    rows = np.array(record["row_losses"], float).reshape(n_rows)
    return record | numbers | {"row_losses": rows.tolist()}
