"""A run: fit a model on a data set, measure it, and leave everything in one folder."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from piefs.app.clock import Clock
from piefs.app.folder import RunFolder, TableDetails
from piefs.data import Dataset
from piefs.data.files import library_versions, write_json
from piefs.errors import InputError
from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.estimators.decisions import rows_to_learn_from
from piefs.estimators.persistence import save
from piefs.report.scores import evaluate, probe
from piefs.training.callbacks import Callback, in_words, write_history
from piefs.training.config import Settings
from piefs.training.runtime import entered_by_first, leave
from piefs.training.sharding import devices_in_use
from piefs.training.solvers import DESCENT

ESTIMATORS: dict[str, type] = {
    "classification": PIEFSClassifier,
    "regression": PIEFSRegressor,
    "unsupervised": PIEFSTransformer,
}
CHECKPOINT_SECONDS = 5.0
DRAWING_SECONDS, BASELINE_SECONDS = 2.5, 5e-6
"""What scores, pictures and page take, and baselines for each cell that they are fitted on."""


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
    clock: Clock | None = None,
    tell: Callable[[str], object] = lambda plan: None,
    **keywords: Any,
) -> dict[str, Any]:
    """Fit with the given estimator keywords, write the run folder, return its metrics.

    Without labels (`task="unsupervised"`) the scores are those of a linear probe on the training
    coordinates: scikit-learn's logistic regression, or least squares if the target is a number.
    With `figures` the folder has pictures of what was learned, with `report` a page about the run.
    Of several processes the first one writes and measures; the others return without metrics.
    The `clock` may have begun earlier; `tell` hears how the model will be found and how long it
    will take.
    """
    clock = clock or Clock()
    _check_task(task, data, keywords)
    table, folder = table or TableDetails.of_numbers(data), RunFolder(out)
    estimator = ESTIMATORS[task](**{"standardize": data.standardize, **keywords})
    settings = estimator.check_settings(
        rows_to_learn_from(estimator.solver, data.train.x, table.unlabeled),
        n_features=data.train.x.shape[1],
        n_classes=len(data.class_names),
        supervised=task != "unsupervised",
    )
    devices = devices_in_use()
    # Callbacks come after the settings, since with some "auto" would choose networks.
    tell(plan_in_words(settings, data, report=report))
    clock.end("reading")
    checkpoint = None
    if settings.solver in DESCENT:
        from piefs.training.checkpoint import Checkpoint

        checkpoint = Checkpoint(folder.checkpoint, every_seconds=checkpoint_seconds, resume=resume)
        estimator.callbacks = [checkpoint, *callbacks]
    with entered_by_first(folder.locked(resume=resume, force=force), devices):
        readout = _fitted(estimator, data, table.unlabeled)
        if devices.n_processes > 1:
            leave()
        if devices.process > 0:
            return {}
        clock.end("fitting")
        earlier = None if checkpoint is None else checkpoint.seconds
        left = partial(_left_in, folder, estimator, readout, data.in_memory, table, task)
        metrics = left(clock, earlier, figures=figures, report=report)
        for path in folder.checkpoints:
            path.unlink()
    return metrics


def _left_in(
    folder: RunFolder,
    estimator: Any,
    readout: Any,
    data: Dataset,
    table: TableDetails,
    task: str,
    clock: Clock,
    fitting: float | None,
    *,
    figures: bool,
    report: bool,
) -> dict[str, Any]:
    """Leave model, history, pictures, page and, last, the metrics in a folder."""
    metrics: dict[str, Any] = {"dataset": data.name, "task": task}
    metrics |= evaluate(estimator, readout, data) | _account(estimator)
    save(estimator, folder.model, table.document(data))
    if estimator.history_:
        write_history(folder.history, estimator.history_)
    if figures or report:
        from piefs.report.evidence import collect
        from piefs.report.page import write_page
        from piefs.report.pictures import pictures, write_pngs

        about: Any = {"task": task, "encoder": table.encoder, "notices": table.notices}
        evidence = collect(estimator, readout, data, **about, with_baselines=report)
        clock.end("measuring")
        if figures:
            drawn = pictures(evidence, metrics, estimator.history_, estimator)
            write_pngs(folder.figures, drawn)
        if report:
            write_json(folder.evidence, evidence, indent=None)
            write_page(folder.path, metrics, lambda: clock.told(metrics, fitting))
    clock.told(metrics, fitting)
    write_json(folder.metrics, metrics)
    return metrics


def plan_in_words(settings: Settings, data: Dataset, *, report: bool) -> str:
    """How a model will be found, and how long that takes; networks show the time left instead."""
    if settings.solver != "eigen":
        return f"{settings.total_steps:,} steps of networks (solver {settings.solver})."
    from piefs.training.eigen import expected_seconds

    n, d = data.train.x.shape
    fitting, whole = expected_seconds(n, d), ""
    if report:
        from piefs.report.evidence import BASELINE_CELLS

        rest = DRAWING_SECONDS + BASELINE_SECONDS * min(n * d, BASELINE_CELLS)
        whole = f", about {in_words(max(fitting + rest, 1))} with scores and page"
    return f"In closed form (solver eigen): about {in_words(max(fitting, 1))} to fit{whole}."


def _account(estimator: Any) -> dict[str, Any]:
    """The steps it took, with which settings and versions, and what it warned of."""
    steps, settings = estimator.n_iter_, estimator.settings_
    return {
        "steps": steps,
        "steps_saved": settings.total_steps - steps if steps else 0,
        "warnings": [asdict(finding) for finding in estimator.warnings_],
        "versions": library_versions(),
        "config": settings.document(),
    }


def _check_task(task: str, data: Dataset, keywords: dict[str, Any]) -> None:
    """Refuse a task that does not fit the data or the keywords."""
    found, kind = ("regression", "numbers") if data.is_regression else ("classification", "classes")
    if task not in (found, "unsupervised"):
        raise InputError(
            f"{data.name!r} is a data set of {kind}: take --task {found} or unsupervised, "
            f"not {task}"
        )
    if task != "classification" and keywords.get("class_weight") is not None:
        raise InputError(
            f"class_weight is for classification, and the task is {task}: leave it out"
        )


def _fitted(estimator: Any, data: Dataset, unlabeled: np.ndarray | None) -> Any:
    """Fit, and give back what predicts: the estimator, a probe, or None without a target."""
    if not isinstance(estimator, PIEFSTransformer):
        more = {"validation_data": (data.validation.x, data.validation.y), "groups": data.groups}
        return estimator.fit(data.train.x, data.train.y, X_unlabeled=unlabeled, **more)
    rows = data.train.x if unlabeled is None else np.concatenate([data.train.x, unlabeled])
    estimator.fit(rows)
    data = data.in_memory
    if len(data.class_names) == 1:
        return None
    return probe(estimator, is_regression=data.is_regression).fit(data.train.x, data.train.y)
