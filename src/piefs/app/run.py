"""Fit, measure, write: what `piefs fit` and `piefs demo` do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from piefs.app.runs.figures import draw
from piefs.data import Dataset, atomic
from piefs.data.column_encoding import ColumnEncoding
from piefs.data.encoder import TableEncoder
from piefs.data.locks import held
from piefs.data.models import library_versions
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.estimators.files import save
from piefs.estimators.settings import n_rows_to_learn_from
from piefs.report import EVIDENCE, PAGE, collect, write_page
from piefs.report.scores import NumberProbe, Probe, evaluate
from piefs.training.checkpoint import Checkpoint, kept, previous
from piefs.training.history_file import write_history
from piefs.training.loop import Callback
from piefs.training.processes import entered_by_first, leave
from piefs.training.sharding import devices_of

ESTIMATORS: dict[str, type] = {
    "classification": PIEFSClassifier,
    "regression": PIEFSRegressor,
    "unsupervised": PIEFSTransformer,
}
TASKS = tuple(ESTIMATORS)
CHECKPOINT_SECONDS = 5.0


METRICS, HISTORY, CHECKPOINT = "metrics.json", "history.csv", "checkpoint.safetensors"


class RunFolder:
    """RUN/model, metrics.json, history.csv, figures, report.html, and while running a checkpoint.

    RUN/report.json is what the report needs to be written anew.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.model = self.path / "model"
        self.metrics = self.path / METRICS
        self.history = self.path / HISTORY
        self.figures = self.path / "figures"
        self.evidence = self.path / EVIDENCE
        self.report = self.path / PAGE
        self.checkpoint = self.path / CHECKPOINT

    @property
    def is_finished(self) -> bool:
        """Whether a whole run is here: its metrics are written last."""
        return self.metrics.is_file()

    @property
    def is_unfinished(self) -> bool:
        """Whether a run was begun here and not ended."""
        return bool(kept(self.checkpoint))

    @contextmanager
    def opened(self, *, resume: bool = False, force: bool = False) -> Iterator[None]:
        """Hold the folder for one run; `force` starts over in a used one, `resume` continues."""
        with held(self.path):
            if force:
                self._clear()
            self._refuse_overwriting(resume)
            yield

    def _refuse_overwriting(self, resume: bool) -> None:
        if self.is_finished:
            raise InputError(
                f"{self.path} holds a finished run; choose another --out, or --force to replace it"
            )
        if self.is_unfinished and not resume:
            raise InputError(
                f"{self.path} holds an unfinished run; continue it with --resume, or start over "
                "with --force"
            )

    def _clear(self) -> None:
        """Take away what says that a run is here; its other files are replaced one by one."""
        for path in (self.metrics, self.evidence, self.report):
            path.unlink(missing_ok=True)
        self.drop_checkpoints()

    def drop_checkpoints(self) -> None:
        """Take away what a run resumes from, once it has ended or starts over."""
        for path in (previous(self.checkpoint), self.checkpoint):
            path.unlink(missing_ok=True)


def run(
    dataset: Dataset,
    out: str | Path,
    *,
    task: str = "classification",
    unlabeled: np.ndarray | None = None,
    document: dict[str, Any] | None = None,
    notices: Sequence[str] = (),
    figures: bool = True,
    report: bool = True,
    resume: bool = False,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    callbacks: Sequence[Callback] = (),
    **keywords: Any,
) -> dict[str, Any]:
    """Fit with the given estimator keywords, write the run folder, return its metrics.

    Without labels (`task="unsupervised"`) scores are those of a logistic regression with
    scikit-learn's defaults, fitted on the training coordinates, or of least squares where the data
    hold numbers. `document` says of the data, in model.json, what other files are read by; it is
    that of `described_data` unless given. With `figures` the folder has pictures of what was
    learned, with `report` a page about the run, on which `notices` appear. Of several processes
    the first one writes and measures, and the others return without metrics.
    """
    _check_task(task, dataset, keywords)
    document = document or described_data(dataset)
    folder = RunFolder(out)
    checkpoint = Checkpoint(folder.checkpoint, every_seconds=checkpoint_seconds, resume=resume)
    keywords = {
        "standardize": dataset.standardize,
        "callbacks": [checkpoint, *callbacks],
        **keywords,
    }
    estimator = ESTIMATORS[task](**keywords)
    n_rows = n_rows_to_learn_from(estimator.schedule, dataset.train.x, unlabeled)
    estimator.check_settings(n_rows, supervised=task != "unsupervised")
    devices = devices_of(estimator.devices)
    with entered_by_first(folder.opened(resume=resume, force=force), devices):
        readout = _fit(estimator, dataset, unlabeled)
        dataset = dataset.in_memory
        seconds = checkpoint.seconds
        if devices.n_processes > 1:
            leave()
        if devices.process > 0:
            return {}
        metrics = {
            "dataset": dataset.name,
            "task": task,
            **evaluate(estimator, readout, dataset),
            "steps": estimator.n_iter_,
            "steps_saved": estimator.n_iter_budget_ - estimator.n_iter_,
            "warnings": [asdict(finding) for finding in estimator.warnings_],
            "seconds": seconds,
            "steps_per_second": estimator.n_iter_ / seconds,
            "versions": library_versions(),
            "config": estimator.settings_ | {"seed": estimator.seed_},
        }
        save(estimator, folder.model, document)
        write_history(folder.history, estimator.history_)
        if figures:
            draw(estimator, readout, dataset, folder.figures)
        if report:
            encoder = TableEncoder.from_document(document["table"])
            evidence = collect(
                estimator, readout, dataset, task=task, encoder=encoder, notices=notices
            )
            atomic.write_json(folder.evidence, evidence, indent=None)
        atomic.write_json(folder.metrics, metrics)
        folder.drop_checkpoints()
        if report:
            write_page(folder.path)
    return metrics


def described_data(
    data: Dataset,
    encoder: TableEncoder | None = None,
    target: str | None = None,
    id_column: str | None = None,
) -> dict[str, Any]:
    """What model.json must know of the data, so that other files can be read the same way."""
    if encoder is None:
        encoder = TableEncoder(tuple(ColumnEncoding(name, "number") for name in data.feature_names))
    return {
        "dataset": data.name,
        "class_names": list(data.class_names),
        "target": target,
        "id": id_column,
        "table": encoder.to_document(),
    }


def _check_task(task: str, data: Dataset, keywords: dict[str, Any]) -> None:
    """Refuse a task that the data, or the keywords, are not for."""
    if task not in TASKS:
        raise InputError(f"task {task!r} is unknown; choose one of {', '.join(TASKS)}")
    if task == "regression" and not data.is_regression:
        raise InputError(
            f"{data.name!r} is a data set of classes, not of numbers; take --task classification"
        )
    if task == "classification" and data.is_regression:
        raise InputError(
            f"{data.name!r} is a data set of numbers, not of classes; take --task regression"
        )
    if task != "classification" and keywords.get("class_weight") is not None:
        raise InputError(
            f"class_weight is for classification, and the task is {task}: leave it out"
        )


def _fit(estimator: Any, data: Dataset, unlabeled: np.ndarray | None) -> Any:
    """Fit, and give back what predicts: the estimator, a probe, or None without a target."""
    if not isinstance(estimator, PIEFSTransformer):
        held_out = data.validation.x, data.validation.y
        return estimator.fit(
            data.train.x, data.train.y, X_unlabeled=unlabeled, validation_data=held_out
        )
    rows = data.train.x if unlabeled is None else np.concatenate([data.train.x, unlabeled])
    estimator.fit(rows)
    data = data.in_memory
    if len(data.class_names) == 1:
        return None
    probe = NumberProbe if data.is_regression else Probe
    return probe(estimator).fit(data.train.x, data.train.y)
