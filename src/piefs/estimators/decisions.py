"""What the data decide: settings without any "auto", from those that were asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from piefs.core.weighting import Static
from piefs.errors import InputError
from piefs.training.config import Metric, Optimizer, Settings

PASSES, FEWEST_STEPS, MOST_STEPS = 16, 2000, 20_000
"""The rule for steps_per_component="auto": passes over the rows, within limits."""

BATCHES_A_PASS, SMALL_BATCH, LARGE_BATCH = 8, 64, 256
"""The rule for batch_size="auto": an eighth of the rows, within limits."""

WEIGHT_DECAY = 0.3

FEW_FEATURES = 64
ROWS_TO_SPARE = 10_000  # with so many rows, some can be held out for early stopping
STREAMED_WINDOW = 2**17  # rows among which those read from a file are shuffled
MOST_MAPS, ROWS_A_MAP = 32, 10
"""n_components="auto" trains at most so many maps, and no more than one for every ten rows."""

MANY_FEATURES, MANY_ROWS = 100, 10_000
"""With more of both, as images and embeddings have, networks descend."""

OF_DESCENT = (
    *("hidden", "activation", "smoothness", "weighting", "steps_per_component", "batch_size"),
    *("learning_rate", "weight_decay", "optimizer", "early_stopping", "pretraining"),
)
"""Keywords that mean nothing to the solver in closed form."""

STEPS_TO_STOP_IN, FEWEST_ROWS, MOST_ROWS = 200, 100, 10_000
"""All maps at once stop early by default beyond so many steps, with so many rows: fewer held-out
rows say little, and with more there is little overfitting in the passes over them."""


@dataclass(frozen=True)
class Facts:
    """What a decision needs to know of the data.

    `n_rows` counts what settings follow from: for "spectral", unlabelled rows too. `descends` is
    set if something only makes sense where maps descend: callbacks, a warm start, several devices.
    """

    n_rows: int
    n_features: int = 1
    is_supervised: bool = True
    is_streamed: bool = False
    is_validated: bool = False
    n_classes: int = 0
    descends: bool = False


def rows_to_learn_from(solver: str | None, rows: Any, unlabeled: Any) -> int:
    """The rows that settings follow from: a graph treats labelled and unlabelled ones alike."""
    return len(rows) + (len(unlabeled) if solver == "spectral" and unlabeled is not None else 0)


def decided(settings: Settings, facts: Facts) -> Settings:
    """The settings for these data; an InputError if they cannot work together, or with the data."""
    settings = replace(settings, solver=_solver(settings, facts))
    _check_auto_components(settings, facts)
    if settings.solver == "eigen":
        return _closed_form(settings, facts)
    check_relevance(settings)
    settings = replace(settings, n_components=_n_components(settings, facts))
    n_rows = min(facts.n_rows, settings.graph_rows) if _is_spectral(settings) else facts.n_rows
    batch: Any = settings.batch_size
    if batch == "auto":
        batch = min(max(n_rows // BATCHES_A_PASS, SMALL_BATCH), LARGE_BATCH)
    batch = min(int(batch), n_rows)
    steps: Any = settings.steps_per_component
    if steps == "auto":
        steps = min(max(round(PASSES * n_rows / batch), FEWEST_STEPS), MOST_STEPS)
    decay: Any = settings.weight_decay
    settings = replace(
        settings,
        batch_size=batch,
        steps_per_component=int(steps),
        weight_decay=WEIGHT_DECAY if decay == "auto" else float(decay),
    )
    if settings.metric.hidden is None and not facts.is_supervised:
        settings = replace(settings, metric=replace(settings.metric, hidden=(64, 64, 64)))
    if settings.activation == "auto":
        settings = replace(settings, activation=activation_for(facts.n_features))
    if settings.optimizer.shuffle_window == "auto":
        window = STREAMED_WINDOW if facts.is_streamed else None
        settings = replace(settings, optimizer=replace(settings.optimizer, shuffle_window=window))
    if not facts.is_supervised and "weighting" not in settings.asked and _is_in_turn(settings):
        settings = replace(settings, weighting=Static(1.0, 0.0, 1.0))  # App. C
    if getattr(settings.weighting, "t_class", None) == "calibrated" and not settings.pretraining:
        raise InputError('t_class="calibrated" needs pretraining="graph-laplacian"')
    if settings.early_stopping == "auto":
        return replace(settings, early_stopping=_stops_early(settings, facts))
    return settings


def activation_for(n_features: int) -> str:
    """What "auto" means: smooth maps of few features, for which they generalise better.

    With many features the first layer takes most of the time, and a ReLU's cheap derivative pays.
    """
    return "silu" if n_features <= FEW_FEATURES else "relu"


def most_maps(n_rows: int) -> int:
    """How many maps "auto" trains, to keep as few as do."""
    return min(MOST_MAPS, max(n_rows // ROWS_A_MAP, 1))


def _is_spectral(settings: Settings) -> bool:
    return settings.solver == "spectral"


def _is_in_turn(settings: Settings) -> bool:
    return settings.solver == "sequential"


def _stops_early(settings: Settings, facts: Facts) -> bool:
    """Maps in turn stop early if rows can be spared; all at once, if there is time to overfit."""
    if _is_spectral(settings):
        return False  # no loss on labels while training
    if _is_in_turn(settings):
        return facts.is_validated or facts.n_rows >= ROWS_TO_SPARE
    is_long = settings.steps_per_component > STEPS_TO_STOP_IN
    return facts.is_supervised and FEWEST_ROWS <= facts.n_rows < MOST_ROWS and is_long


def _check_auto_components(settings: Settings, facts: Facts) -> None:
    """Refuse to choose a number of maps if nothing says which is better."""
    if settings.n_components != "auto":
        return
    if not facts.is_supervised:
        raise InputError(
            'n_components="auto" needs labels, since the loss on held-out ones decides: give '
            "their number, or fit with labels"
        )
    if settings.solver not in ("eigen", "nested", "sequential"):
        raise InputError(
            'n_components="auto" needs maps that have an order, and with solver='
            f'"{settings.solver}" they have none: take "eigen", "nested" or "sequential"'
        )


def _solver(settings: Settings, facts: Facts) -> str:
    """The solver that fits the mode: order by labels needs labels, and a graph needs rows."""
    found = settings.solver
    if found == "auto":
        found = "eigen" if _is_table(settings, facts) else "nested"
        if found == "nested" and not facts.is_supervised:
            needed = settings.asked.get("n_components", 1) + 2
            found = "spectral" if facts.n_rows >= needed else "joint"
    elif found == "nested" and not facts.is_supervised:
        raise InputError('solver="nested" needs labels; without them use "spectral" or "joint"')
    has_loss = found in ("eigen", "sequential") or (found != "spectral" and facts.is_supervised)
    if settings.early_stopping is True and not has_loss:
        raise InputError(
            f'early_stopping watches a loss on labels, and solver="{found}" has none here until '
            "its steps are over: leave it out"
        )
    return found


def _is_table(settings: Settings, facts: Facts) -> bool:
    """Whether the closed form fits: few columns or few rows, and no keyword that asks for steps."""
    is_small = facts.n_features <= MANY_FEATURES or facts.n_rows <= MANY_ROWS
    metric = settings.asked.get("metric", Metric())
    asks_for_steps = facts.descends or set(settings.asked) & set(OF_DESCENT)
    return is_small and not asks_for_steps and metric in (Metric(), Metric("diag"))


def _closed_form(settings: Settings, facts: Facts) -> Settings:
    """Settings of the solver "eigen", which takes no steps."""
    if found := [name for name in OF_DESCENT if name in settings.asked]:
        raise InputError(
            f'{found[0]} has no meaning with solver="eigen", which takes no steps: leave it out, '
            'or take solver="nested"'
        )
    metric = settings.asked.get("metric", Metric("diag"))
    if metric not in (Metric(), Metric("diag")):
        raise InputError(
            f'solver="eigen" learns a scaling of the inputs, metric="diag", or none, "off": '
            f"metric={metric.name!r} needs a solver that descends"
        )
    n = _n_components(settings, facts)
    if "n_components" not in settings.asked:
        n = min(max(n, facts.n_classes - 1), facts.n_rows)
    optimizer: Optimizer = replace(settings.optimizer, dtype="float64", shuffle_window=None)
    return replace(
        settings, n_components=n, metric=metric, optimizer=optimizer, early_stopping=False
    )


def _n_components(settings: Settings, facts: Facts) -> Any:
    """The number of maps, within what the rows allow; a preset's number is clipped to that."""
    wanted, is_asked = settings.n_components, "n_components" in settings.asked
    if wanted == "auto":
        return most_maps(facts.n_rows)
    if _is_spectral(settings):
        return _maps_of_a_graph(wanted, min(facts.n_rows, settings.graph_rows), is_asked=is_asked)
    if is_asked and wanted > facts.n_rows:
        raise InputError(
            f"n_components={wanted} is more than the {facts.n_rows} rows to learn from: more "
            "orthonormal coordinates than rows cannot exist"
        )
    return min(int(wanted), facts.n_rows)


def _maps_of_a_graph(wanted: int, n_rows: int, *, is_asked: bool) -> int:
    """How many maps: a graph has as many eigenmaps as points, less the constant and the last."""
    most = n_rows - 2
    if most < 1 or (is_asked and wanted > most):
        raise InputError(
            f"a graph of {n_rows} rows has {max(most, 0)} eigenmaps to learn, and "
            f"n_components={wanted} asks for more: give more rows, or take fewer maps or "
            'solver="joint"'
        )
    return min(int(wanted), most)


def check_relevance(settings: Settings) -> None:
    """Refuse a keyword that the solver would ignore."""
    solver, asked = settings.solver, settings.asked
    if "smoothness" in asked and solver == "sequential":
        raise InputError(
            'smoothness has no meaning with solver="sequential": its weighting decides'
        )
    weighting = asked.get("weighting")
    if weighting is None or solver == "sequential":
        if isinstance(weighting, Static) and weighting.prefix is not None:
            raise InputError('prefix has no meaning with solver="sequential": it needs "nested"')
        return
    if solver == "spectral":
        raise InputError('weighting has no meaning with solver="spectral", which uses no labels')
    if not isinstance(weighting, Static):
        raise InputError(
            f'{weighting!r} has no meaning with solver="{solver}": it needs solver="sequential", '
            f'and solver="{solver}" takes weighting=Static(orth=…)'
        )
    if (weighting.class_, weighting.mde) != (1.0, 1.0):
        raise InputError(
            f'class_ and mde have no meaning with solver="{solver}", whose energies are weighed '
            "by smoothness"
        )
    if weighting.prefix is not None and solver != "nested":
        raise InputError(f'prefix has no meaning with solver="{solver}": it needs solver="nested"')
