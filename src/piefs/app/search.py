"""Settings chosen by a search on validation rows, within a budget (extra [tune]).

Optuna proposes settings near the defaults, and joblib fits as many at a time as there are jobs. The
defaults take part and win ties: other settings must be better by more than the standard error of
the difference, row by row. A search is the same each time, so one that was cut off takes the fits
that it finds in its folder, and does the rest.
"""

import json
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

from piefs.data import files
from piefs.errors import DivergedError, InputError, TrainingWarning
from piefs.estimators import PIEFSClassifier, PIEFSRegressor
from piefs.estimators.decisions import OF_DESCENT
from piefs.training.config import Settings

Keywords = dict[str, Any]
Record = dict[str, Any]
Tell = Callable[[str, int, int], None]

CHOICES: dict[str, tuple[Any, ...]] = {
    "smoothness": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1),
    "learning_rate": (1e-3, 2e-3, 4e-3, 1e-2),
    "weight_decay": (0.1, 0.3, 1.0, 3.0, 10.0),
    "hidden": ([32, 32, 32], [64, 64], [64, 64, 64], [128, 128]),
    "activation": ("relu", "gelu", "silu"),
    "n_components": (4, 8, 16, 32),
    "metric": ("off", "diag", "agop"),
}
"""What is tried: the settings that matter most (LOG.md)."""

N_TRIALS, MOST_TRIALS = 18, 200
N_FIRST = 10  # the defaults and nine at random; what did well guides the others
SHARE = 0.15  # of the rows to judge by, if none are given
RECORDS, BEST = "trials.jsonl", "best.json"
ESTIMATORS: dict[str, type] = {"classification": PIEFSClassifier, "regression": PIEFSRegressor}


class TuningData(NamedTuple):
    """An unfitted estimator, the rows to fit it on and those to judge by; none for the test."""

    estimator: Any
    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    `keywords` are the best settings, none but the fixed ones if those are the defaults; `records`
    hold all fits in order of their loss; `gain` is by how much the best loss is lower than that of
    the defaults, and `gain_error` its standard error.
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
    n_jobs
        How many to fit at a time; `joblib.parallel_config` says where, a Dask cluster for one.
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
    folder = None if out is None else Path(out)
    search = Search(data, fixed or {}, seed, folder)
    with nullcontext() if folder is None else files.held(folder):
        search.resume()
        search.run(most, 60 * (budget_minutes or np.inf), n_jobs, tell)
        return search.verdict()


def tuning_data(
    X: Any, y: Any, validation_data: Any, task: str | None, keywords: Keywords
) -> TuningData:
    """The rows of a search; a share of them is set aside to judge by if none are given."""
    X, y = np.asarray(X), np.asarray(y)
    if task is None:
        is_class = type_of_target(y) in ("binary", "multiclass") and y.dtype.kind != "f"
        task = "classification" if is_class else "regression"
    if task not in ESTIMATORS:
        raise InputError(f"task {task!r} cannot be tuned; choose one of {', '.join(ESTIMATORS)}")
    if validation_data is None:
        can_stratify = task == "classification" and np.unique(y, return_counts=True)[1].min() > 1
        options = {"stratify": y if can_stratify else None, "random_state": 0}
        X, held_x, y, held_y = train_test_split(X, y, test_size=SHARE, **options)
        validation_data = held_x, held_y
    held_x, held_y = map(np.asarray, validation_data)
    return TuningData(ESTIMATORS[task](**keywords), (X, y), (held_x, held_y))


class Search:
    """A search that knows what has been fitted, by settings."""

    def __init__(self, data: TuningData, fixed: Keywords, seed: int, out: Path | None) -> None:
        self.data, self.fixed, self.out = data, fixed, out
        self.name = out and joblib.hash(data)
        self.names, self.records = open_to_choice(fixed), dict[str, Record]()
        optuna = files.optional("optuna", "a search for settings", "tune")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=N_FIRST, seed=seed, constant_liar=True
        )
        self.study = optuna.create_study(sampler=sampler)
        self.study.enqueue_trial({f"change {name}": False for name in self.names})

    def resume(self) -> None:
        """Read the records that are there; damaged ones and those of another search are refused."""
        if self.out is None or not (path := self.out / RECORDS).is_file():
            return
        with files.reading(path, "remove it, and the search starts over"):
            *lines, cut_off = files.bounded_text(path).split("\n")
            for line in lines:
                record = files.parse_json(line)
                if record.pop("digest") != self._digest(record):
                    raise InputError(
                        f"{path} is damaged or of another search, with other rows, seed or fixed "
                        "settings; choose another --out, or remove it, and the search starts over"
                    )
                self.records[_key(record["keywords"])] = record
        if cut_off:  # the process was killed while it wrote this line
            files.write_bytes(path, "".join(f"{line}\n" for line in lines).encode())

    def _digest(self, record: Record) -> str:
        """A name for a record of this search, by the contents of both."""
        return str(joblib.hash([self.name, json.dumps(record, sort_keys=True)]))

    def run(self, most: int, seconds: float, n_jobs: int | None, tell: Tell) -> None:
        """The defaults, whatever the time; then others, as long as there is time."""
        begun, most = time.monotonic(), most if self.names else 1
        done, spent, at_a_time = 0, 0.0, 1
        while not done or (done < most and spent < seconds):
            trials = [self.study.ask() for _ in range(min(at_a_time, most - done))]
            self._fit(trials, n_jobs)
            done, spent = done + len(trials), time.monotonic() - begun
            at_a_time = joblib.effective_n_jobs(n_jobs or 1)
            if seconds < np.inf:
                tell("seconds", int(min(spent, seconds)), int(seconds))
            else:
                tell("fits", done, most)

    def _fit(self, trials: list[Any], n_jobs: int | None) -> None:
        """Fit what has no record, keep a line of each fit as it ends, and let Optuna know."""
        candidates = [drawn(trial, self.names) for trial in trials]
        missing = {_key(one): one for one in candidates if _key(one) not in self.records}
        jobs = (joblib.delayed(fitted)(self.data, one) for one in missing.values())
        records: Any = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
        for record in records:
            self.records[_key(record["keywords"])] = record
            if self.out is not None:
                line = json.dumps(record | {"digest": self._digest(record)})
                with (self.out / RECORDS).open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        for trial, candidate in zip(trials, candidates, strict=True):
            loss = self.records[_key(candidate)]["loss"]
            self.study.tell(trial, np.inf if loss is None else loss)

    def verdict(self) -> Tuned:
        """The best, and by how much it beats the defaults."""
        defaults = self.records[_key({})]
        fits = [one for one in self.records.values() if one["loss"] is not None]
        if not fits:
            raise InputError(f"no settings could be fitted: {defaults['error']}")
        fits.sort(key=lambda one: one["loss"])
        gain, error = float("inf"), 0.0
        if defaults["loss"] is not None:
            rows = np.subtract(defaults["row_losses"], fits[0]["row_losses"])
            gain, error = float(rows.mean()), float(rows.std() / np.sqrt(len(rows)))
        keywords = self.fixed | (fits[0]["keywords"] if gain > error else {})
        if self.out is not None:
            files.write_json(self.out / BEST, keywords)
        return Tuned(keywords, fits, gain, error)


def open_to_choice(fixed: Keywords) -> list[str]:
    """The settings that are not fixed and mean something to the solver that is."""
    solver = Settings.of(fixed.get("preset", "default"), solver=fixed.get("solver")).solver
    unused = {"eigen": OF_DESCENT, "sequential": ("smoothness",)}.get(solver, ())
    return [name for name in CHOICES if name not in (*fixed, *unused)]


def drawn(trial: Any, names: list[str]) -> Keywords:
    """The keywords of a candidate: each setting differs from the default, or does not."""
    keywords: Keywords = {}
    for name in names:
        if trial.suggest_categorical(f"change {name}", [False, True]):
            keywords[name] = CHOICES[name][trial.suggest_int(name, 0, len(CHOICES[name]) - 1)]
    return keywords


def fitted(data: TuningData, keywords: Keywords) -> Record:
    """The record of a fit: loss and its standard error, score, time.

    A fit that diverges, or that these rows do not allow, has a loss of None.
    """
    begun = time.monotonic()
    model: Any = clone(data.estimator)
    model.set_params(**keywords)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)
            model.fit(*data.train, validation_data=data.validation)
    except (DivergedError, InputError) as error:
        return {"keywords": keywords, "loss": None, "error": str(error)}
    losses = row_losses(model, *data.validation)
    return {
        "keywords": keywords,
        "loss": float(losses.mean()),
        "losses_error": float(losses.std() / np.sqrt(len(losses))),
        "score": float(model.score(*data.validation)),
        "seconds": time.monotonic() - begun,
        "row_losses": [round(float(loss), 6) for loss in losses],
    }


def row_losses(model: Any, x: Any, y: np.ndarray) -> np.ndarray:
    """The loss of each row: −log p of its class, or its squared error in units of the variance."""
    if isinstance(model, PIEFSRegressor):
        error = (y - model.predict(x)).reshape(len(x), -1) / model.target_scale_
        return np.mean(error**2, axis=1)
    return -model.predict_log_proba(x)[np.arange(len(x)), np.searchsorted(model.classes_, y)]


def _key(keywords: Keywords) -> str:
    return json.dumps(keywords, sort_keys=True)
