"""A run: fit a model on a data set, measure it, and leave everything in one folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data import Dataset
from piefs.data.encoder import ColumnEncoding, TableEncoder
from piefs.data.files import held, library_versions, write_json
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.estimators.decisions import rows_to_learn_from
from piefs.estimators.persistence import save
from piefs.report import EVIDENCE, PAGE
from piefs.report.scores import evaluate, probe
from piefs.training.callbacks import Callback, write_history
from piefs.training.checkpoint import Checkpoint, kept, previous
from piefs.training.runtime import entered_by_first, is_first, leave
from piefs.training.sharding import devices_in_use

ESTIMATORS: dict[str, type] = {
    "classification": PIEFSClassifier,
    "regression": PIEFSRegressor,
    "unsupervised": PIEFSTransformer,
}
METRICS, HISTORY, CHECKPOINT = "metrics.json", "history.csv", "checkpoint.safetensors"
CHECKPOINT_SECONDS = 5.0


class RunFolder:
    """RUN/model, metrics.json, history.csv, figures, report.html, and while running a checkpoint.

    RUN/report.json is what the report can be written from again.
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
    def locked(self, *, resume: bool = False, force: bool = False) -> Iterator[None]:
        """Hold the folder for one run; a used one is refused unless it is to be replaced."""
        with held(self.path):
            if not force:
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

    def clearing(self) -> Callback:
        """A callback that removes an earlier run once the new one trains, before its first file."""
        remaining = iter((self._clear,))

        def clear(_: Any) -> None:
            for remove in remaining:
                remove()

        return clear

    def _clear(self) -> None:
        """Remove what says that a run is here; its other files are replaced one by one."""
        if is_first():
            for path in (self.metrics, self.evidence, self.report):
                path.unlink(missing_ok=True)
            self.drop_checkpoints()

    def drop_checkpoints(self) -> None:
        """Remove what a run resumes from, once it has ended or starts over."""
        for path in (previous(self.checkpoint), self.checkpoint):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class TableDetails:
    """What is known of a user's own table beside its data set."""

    encoder: TableEncoder
    target: str | None = None
    id_column: str | None = None
    unlabeled: np.ndarray | None = None
    notices: Sequence[str] = ()

    @classmethod
    def of_numbers(cls, data: Dataset) -> TableDetails:
        """Of a built-in data set, all of whose columns are numbers."""
        columns = (ColumnEncoding(name, "number") for name in data.feature_names)
        return cls(TableEncoder(tuple(columns)))

    def document(self, data: Dataset) -> dict[str, Any]:
        """What model.json says of the data, so that other files can be read the same way."""
        return {
            "dataset": data.name,
            "class_names": list(data.class_names),
            "target": self.target,
            "id": self.id_column,
            "table": self.encoder.to_document(),
        }


def run(
    data: Dataset,
    out: str | Path,
    *,
    task: str = "classification",
    table: TableDetails | None = None,
    figures: bool = True,
    report: bool = True,
    resume: bool = False,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    callbacks: Sequence[Callback] = (),
    **keywords: Any,
) -> dict[str, Any]:
    """Fit with the given estimator keywords, write the run folder, return its metrics.

    Without labels (`task="unsupervised"`) the scores are those of a linear probe on the training
    coordinates: scikit-learn's logistic regression, or least squares if the target is a number.
    With `figures` the folder has pictures of what was learned, with `report` a page about the run.
    Of several processes the first one writes and measures; the others return without metrics.
    """
    _check_task(task, data, keywords)
    table = table or TableDetails.of_numbers(data)
    folder = RunFolder(out)
    checkpoint = Checkpoint(folder.checkpoint, every_seconds=checkpoint_seconds, resume=resume)
    before = [folder.clearing()] if force else []
    keywords = {"standardize": data.standardize, **keywords}
    estimator = ESTIMATORS[task](**keywords, callbacks=[*before, checkpoint, *callbacks])
    n_rows = rows_to_learn_from(estimator.solver, data.train.x, table.unlabeled)
    estimator.check_settings(n_rows, supervised=task != "unsupervised")
    devices = devices_in_use()
    with entered_by_first(folder.locked(resume=resume, force=force), devices):
        readout = _fitted(estimator, data, table.unlabeled)
        seconds = checkpoint.seconds
        data = data.in_memory
        if devices.n_processes > 1:
            leave()
        if devices.process > 0:
            return {}
        metrics = {
            **{"dataset": data.name, "task": task},
            **evaluate(estimator, readout, data),
            **_account(estimator, seconds),
        }
        save(estimator, folder.model, table.document(data))
        write_history(folder.history, estimator.history_)
        if figures or report:
            from piefs.report.evidence import collect
            from piefs.report.pictures import write_pngs

            about: Any = {"task": task, "encoder": table.encoder, "notices": table.notices}
            evidence = collect(estimator, readout, data, **about, with_baselines=report)
            if figures:
                write_pngs(folder.figures, evidence, metrics, estimator.history_, estimator)
            if report:
                write_json(folder.evidence, evidence, indent=None)
        write_json(folder.metrics, metrics)
        folder.drop_checkpoints()
        if report:
            from piefs.report.page import write_page

            write_page(folder.path)
    return metrics


def _account(estimator: Any, seconds: float) -> dict[str, Any]:
    """How long it took, with which settings and versions, and what it warned of."""
    return {
        "steps": estimator.n_iter_,
        "steps_saved": estimator.settings_.total_steps - estimator.n_iter_,
        "warnings": [asdict(finding) for finding in estimator.warnings_],
        "seconds": seconds,
        "steps_per_second": estimator.n_iter_ / seconds,
        "versions": library_versions(),
        "config": estimator.settings_.document(),
    }


def _check_task(task: str, data: Dataset, keywords: dict[str, Any]) -> None:
    """Refuse a task that does not fit the data or the keywords."""
    if task not in ESTIMATORS:
        raise InputError(f"task {task!r} is unknown; choose one of {', '.join(ESTIMATORS)}")
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


def _fitted(estimator: Any, data: Dataset, unlabeled: np.ndarray | None) -> Any:
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
    return probe(estimator, is_regression=data.is_regression).fit(data.train.x, data.train.y)
