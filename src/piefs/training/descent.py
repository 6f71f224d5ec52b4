"""The solvers that descend: from rows to a trained, finished, diagnosed model."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from piefs.core.losses import cross_entropy, squared_error
from piefs.core.maps import unstack
from piefs.core.model import Model, Readout
from piefs.core.ritz import whitening
from piefs.core.trees import in_precision
from piefs.errors import InputError
from piefs.training.batches import Samples, Validation
from piefs.training.callbacks import Callback, Stage, notify
from piefs.training.checkpoint import Checkpoint
from piefs.training.config import Settings
from piefs.training.diagnosis import Finding, RunRecord, findings, loss_by_chance, varying
from piefs.training.evaluation import coordinates_of, dirichlet_matrix, evaluate, weighted_gram
from piefs.training.graph import Tell, distilled, graph_samples
from piefs.training.loop import train
from piefs.training.readout import check_readable, probe_cross_entropy, solved_readout
from piefs.training.solvers import Fitted, Task
from piefs.training.state import TrainState, WarmStart, initial_state, rate_in_force

LOSSES: Any = {"classification": cross_entropy, "regression": squared_error, None: None}
ROWS_TO_JUDGE = 10_000  # so many tell whether a map varies


def solve(
    samples: Samples,
    settings: Settings,
    task: Task,
    *,
    validation: Validation | None = None,
    callbacks: Sequence[Callback] = (),
    warm_start: Model | None = None,
) -> Fitted:
    """Train the maps one after the other, all at once, or towards the eigenmaps of a graph."""
    try:
        with jax.enable_x64(settings.optimizer.dtype == "float64"):
            if settings.solver != "sequential":
                settings = replace(settings, leading_variance=leading_variance(samples))
            state, settings = _trained(samples, settings, task, validation, callbacks, warm_start)
            return _finished(state, samples, settings, task)
    finally:
        notify(callbacks, "end")


def _trained(
    samples: Samples,
    settings: Settings,
    task: Task,
    validation: Validation | None,
    callbacks: Sequence[Callback],
    warm_start: Model | None,
) -> tuple[TrainState, Settings]:
    """The state that training ends with, and the settings with T_class as a number."""
    tell: Tell = partial(notify, callbacks, "prepare")
    start = None
    if warm_start is not None:
        start = as_trained(warm_start, samples, settings)
    elif settings.pretraining is not None:
        start, settings = distilled_maps(samples, settings, tell)
    if settings.solver == "spectral":  # the readout comes after training
        check_readable(samples)
        (samples, _), validation = graph_samples(samples, settings, tell), None
    notify(callbacks, "begin", Stage(settings))
    state = initial_state(samples, settings, task.n_outputs, start)
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            callback.bind(settings.document(), samples)
            state = callback.restore(state)
    state = train(
        samples,
        settings,
        n_outputs=task.n_outputs,
        readout_loss=LOSSES[task.kind],
        validation=validation,
        warm_start=start,
        callbacks=callbacks,
        state=state,
    )
    return state, settings


def _finished(state: TrainState, samples: Samples, settings: Settings, task: Task) -> Fitted:
    """The model of the maps that a state has, measured on the rows."""
    trained = coordinates_of(state.maps, samples.x, samples.devices)
    metric, (weights, bias) = state.params.metric, map(np.asarray, state.readout)
    kept = np.arange(trained.shape[1])
    if settings.solver in ("nested", "joint"):
        kept = varying(trained)  # the offset says what a constant map says
        bias = bias + np.delete(weights, kept, axis=1) @ np.delete(trained, kept, axis=1).mean(0)
    raw, maps = trained[:, kept], jax.tree.map(lambda leaf: leaf[kept], state.maps)
    gram = weighted_gram(raw, samples.weights, samples.devices)
    mixing, unmixing = whitening(gram if settings.whiten else np.eye(len(gram)))
    # It reads what it read before; columns for maps that were not begun go.
    readout = Readout(weights[:, kept] @ unmixing, bias)
    parts = in_precision((maps, mixing, metric, readout), samples.x.dtype)
    model = Model(None, *parts)
    phi = evaluate(model, samples.x, devices=samples.devices)
    if settings.solver == "spectral" and samples.target is not None:
        model = replace(model, readout=solved_readout(phi, samples, task.n_outputs))
    settings = replace(settings, n_components=phi.shape[1])
    gram = weighted_gram(phi, samples.weights, samples.devices)
    mixing = np.asarray(model.mixing, np.float64)
    dirichlet = mixing @ dirichlet_matrix(model.maps, metric, samples) @ mixing.T
    return Fitted(
        model,
        settings,
        phi,
        gram,
        dirichlet,
        np.diag(dirichlet).copy() if settings.whiten else np.array(state.energies),
        np.array(state.log_scale_ranges)[kept],
        list(state.history),
        state.steps,
        _findings(state, settings, samples, gram, trained),
    )


def _findings(
    state: TrainState, settings: Settings, samples: Samples, gram: np.ndarray, raw: np.ndarray
) -> list[Finding]:
    """What has gone wrong; where the best maps were kept, up to these."""
    spread = np.linspace(0, len(raw) - 1, min(len(raw), ROWS_TO_JUDGE)).astype(int)
    history = list(state.history)
    if settings.early_stopping and history:
        losses = [row["validation_loss"] for row in history]
        history = history[: int(np.argmin(losses)) + 1]
    return findings(
        RunRecord(
            settings,
            history,
            float(np.sum((gram - np.eye(len(gram))) ** 2)),
            raw[spread],
            state.log_scale_ranges,
            None if settings.solver == "spectral" else loss_by_chance(samples),
            used_all_steps=sum(state.steps) >= settings.total_steps,
            rate_cuts=state.rate_cuts,
            rate=rate_in_force(state, settings),
        )
    )


def leading_variance(samples: Samples, n_rows: int = 5000, n_iterations: int = 50) -> float:
    """The largest eigenvalue of the covariance, by power iteration on rows spread over the data."""
    counting = None if samples.weight is None else np.flatnonzero(samples.weights)
    n = len(samples) if counting is None else len(counting)
    rows = np.linspace(0, n - 1, min(n_rows, n)).astype(int)
    rows = rows if counting is None else counting[rows]
    x, weight = samples.x[rows].astype(np.float64), samples.weights[rows].astype(np.float64)
    weight /= weight.sum()
    centred = (x - weight @ x) * np.sqrt(weight)[:, None]
    direction = np.random.default_rng(0).standard_normal(x.shape[1])
    variance = 0.0
    for _ in range(n_iterations):
        direction = centred.T @ (centred @ (direction / np.linalg.norm(direction)))
        variance = float(np.linalg.norm(direction))
        if variance < np.finfo(np.float32).tiny:
            return 1.0  # all rows are the same: no length to speak of
    return variance


# --- where descent begins ----------------------------------------------------------------------


def as_trained(model: Model, samples: Samples, settings: Settings) -> WarmStart:
    """The maps of a fitted model with the readout on them as they are, before mixing."""
    n, n_features = model.maps.net.weights[0].shape[:2]
    if (n, n_features) != (settings.n_components, samples.x.shape[1]):
        raise InputError(
            f"pretraining is a model of {n} maps of {n_features} features, and n_components="
            f"{settings.n_components} maps of {samples.x.shape[1]} features are to be fitted"
        )
    readout = Readout(model.readout.weights @ model.mixing, model.readout.bias)
    return WarmStart(unstack(model.maps), model.metric, readout)


def distilled_maps(samples: Samples, settings: Settings, tell: Tell) -> tuple[WarmStart, Settings]:
    """Maps fitted to a graph's eigenmaps, and the settings with T_class as a number."""
    needed = settings.n_components + 2
    if min(len(samples), settings.graph_rows) < needed:
        raise InputError(
            f"graph-Laplacian pretraining of {settings.n_components} maps needs at least {needed} "
            f"rows, not {min(len(samples), settings.graph_rows)}"
        )
    graph, rows = graph_samples(samples, settings, tell)
    if getattr(settings.weighting, "t_class", None) == "calibrated":
        if samples.target is None or samples.target.ndim > 1:
            raise InputError('t_class="calibrated" needs classes')
        labeled = samples.label_weights[rows] > 0
        t_class = probe_cross_entropy(graph.targets[labeled], samples.target[rows][labeled])
        settings = replace(settings, weighting=replace(settings.weighting, t_class=t_class))
    return WarmStart(distilled(graph, settings, tell)), settings
