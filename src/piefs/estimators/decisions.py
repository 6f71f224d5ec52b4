"""What the data decide: settings without any "auto", from those that were asked for."""

from dataclasses import dataclass, replace
from typing import Any

from piefs.core.weighting import Static
from piefs.errors import InputError
from piefs.training.config import Metric, Optimizer, Settings

PASSES, FEWEST_STEPS, MOST_STEPS = 12, 2000, 20_000
"""The rule for steps_per_component="auto": passes over the rows, within limits."""

BATCHES_A_PASS, SMALL_BATCH, LARGE_BATCH = 8, 64, 256
"""The rule for batch_size="auto": an eighth of the rows, within limits."""

WEIGHT_DECAY = 0.3

FEW_FEATURES = 64
"""With so many, smooth maps generalise better; with more the first layer takes most of the time,
and a ReLU's cheap derivative pays."""

STREAMED_WINDOW = 2**17  # rows among which those read from a file are shuffled
MOST_MAPS, ROWS_A_MAP = 32, 10
"""n_components="auto" tries at most so many, and no more than one for every ten rows."""

MANY_FEATURES, MANY_ROWS = 100, 10_000
"""With more of both, as images and embeddings have, networks descend."""

OF_DESCENT = (
    *("hidden", "activation", "smoothness", "weighting", "steps_per_component", "batch_size"),
    *("learning_rate", "weight_decay", "optimizer", "early_stopping", "pretraining"),
)
"""Keywords that mean nothing to the solver in closed form."""

STEPS_TO_STOP_IN, FEWEST_ROWS, MOST_ROWS = 200, 100, 10_000
"""Networks stop early by default beyond so many steps, with so many rows: fewer held-out rows say
little, and with more there is little overfitting in the passes over them."""


@dataclass(frozen=True)
class Facts:
    """What a decision needs to know of the data.

    `n_rows` counts what settings follow from: for "spectral", unlabelled rows too.
    `asks_for_steps` names what is asked for that only makes sense where maps descend: callbacks, a
    warm start, several devices.
    """

    n_rows: int
    n_features: int = 1
    is_supervised: bool = True
    is_streamed: bool = False
    n_classes: int = 0
    asks_for_steps: str | None = None


def rows_to_learn_from(solver: str | None, rows: Any, unlabeled: Any) -> int:
    """The rows that settings follow from: a graph treats labelled and unlabelled ones alike."""
    return len(rows) + (len(unlabeled) if solver == "spectral" and unlabeled is not None else 0)


def decided(settings: Settings, facts: Facts) -> Settings:
    """The settings for these data; an InputError if they cannot work together, or with the data."""
    settings = replace(settings, solver=_solver(settings, facts))
    if settings.solver == "eigen":
        return _closed_form(settings, facts)
    check_relevance(settings)
    return _descent(replace(settings, n_components=_n_components(settings, facts)), facts)


# --- the solver ----------------------------------------------------------------------------------


def _solver(settings: Settings, facts: Facts) -> str:
    """The solver that fits the mode: order by labels needs labels, and a graph needs rows."""
    found = settings.solver
    if found == "auto":
        found = "eigen" if _is_table(settings, facts) else "nested"
        if found == "nested" and not facts.is_supervised:
            wanted = settings.asked.get("n_components", 1)
            is_large_enough = wanted == "auto" or facts.n_rows >= wanted + 2
            found = "spectral" if is_large_enough else "joint"
    elif found == "nested" and not facts.is_supervised:
        raise InputError('solver="nested" needs labels; without them use "spectral" or "joint"')
    return found


def _is_table(settings: Settings, facts: Facts) -> bool:
    """Whether the closed form fits: few columns or few rows, and no keyword that asks for steps."""
    is_small = facts.n_features <= MANY_FEATURES or facts.n_rows <= MANY_ROWS
    metric = settings.asked.get("metric", Metric())
    asks_for_steps = facts.asks_for_steps or set(settings.asked) & set(OF_DESCENT)
    return is_small and not asks_for_steps and metric in (Metric(), Metric("diag"))


# --- the closed form -----------------------------------------------------------------------------


def _closed_form(settings: Settings, facts: Facts) -> Settings:
    """Settings of the solver "eigen", which takes no steps."""
    found = [name for name in OF_DESCENT if name in settings.asked]
    found += [facts.asks_for_steps] if facts.asks_for_steps in ("callbacks", "pretraining") else []
    if found:
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
    n: Any = settings.n_components
    if n == "auto":
        if not facts.is_supervised:
            raise InputError(
                'n_components="auto" needs labels, since the loss on rows left out decides: give '
                "their number, or fit with labels"
            )
        n = min(MOST_MAPS, max(facts.n_rows // ROWS_A_MAP, 1))
    else:
        n = _n_components(settings, facts)
    if "n_components" not in settings.asked:
        n = min(max(n, facts.n_classes - 1), facts.n_rows)
    optimizer: Optimizer = replace(settings.optimizer, dtype="float64", shuffle_window=None)
    return replace(
        settings, n_components=n, metric=metric, optimizer=optimizer, early_stopping=False
    )


# --- descent -------------------------------------------------------------------------------------


def _descent(settings: Settings, facts: Facts) -> Settings:
    """Settings of networks, by rules."""
    is_spectral = settings.solver == "spectral"
    n_rows = min(facts.n_rows, settings.graph_rows) if is_spectral else facts.n_rows
    batch, steps, decay = settings.batch_size, settings.steps_per_component, settings.weight_decay
    if batch == "auto":
        batch = min(max(n_rows // BATCHES_A_PASS, SMALL_BATCH), LARGE_BATCH)
    batch = min(int(batch), n_rows)
    if steps == "auto":
        steps = min(max(round(PASSES * n_rows / batch), FEWEST_STEPS), MOST_STEPS)
    settings = replace(
        settings,
        batch_size=batch,
        steps_per_component=int(steps),
        weight_decay=WEIGHT_DECAY if decay == "auto" else float(decay),
    )
    if settings.metric.hidden is None and not facts.is_supervised:
        settings = replace(settings, metric=replace(settings.metric, hidden=(64, 64, 64)))
    if settings.activation == "auto":
        activation = "silu" if facts.n_features <= FEW_FEATURES else "relu"
        settings = replace(settings, activation=activation)
    if settings.optimizer.shuffle_window == "auto":
        window = STREAMED_WINDOW if facts.is_streamed else None
        settings = replace(settings, optimizer=replace(settings.optimizer, shuffle_window=window))
    is_in_turn = settings.solver == "sequential"
    if not facts.is_supervised and "weighting" not in settings.asked and is_in_turn:
        settings = replace(settings, weighting=Static(1.0, 0.0, 1.0))  # App. C
    if getattr(settings.weighting, "t_class", None) == "calibrated" and not settings.pretraining:
        raise InputError('t_class="calibrated" needs pretraining="graph-laplacian"')
    return replace(settings, early_stopping=_stops_early(settings, facts))


def _stops_early(settings: Settings, facts: Facts) -> bool:
    """Maps that descend together stop early if there is time to overfit, and rows to see it by."""
    has_loss = facts.is_supervised and settings.solver in ("nested", "joint")
    if settings.early_stopping == "auto":
        is_long = settings.steps_per_component > STEPS_TO_STOP_IN
        return has_loss and is_long and FEWEST_ROWS <= facts.n_rows < MOST_ROWS
    if settings.early_stopping and not has_loss:
        raise InputError(
            "early_stopping watches a loss on labels while all maps descend, and "
            f'solver="{settings.solver}" has none here: leave it out'
        )
    return bool(settings.early_stopping)


def _n_components(settings: Settings, facts: Facts) -> int:
    """The number of maps, within what the rows allow; a preset's number is clipped to that."""
    wanted, is_asked = settings.n_components, "n_components" in settings.asked
    if wanted == "auto":
        raise InputError(
            'n_components="auto" goes with solver="eigen", which knows the loss on rows left out: '
            "give their number"
        )
    if settings.solver == "spectral":  # as many eigenmaps as points, less the constant and the last
        n_rows = min(facts.n_rows, settings.graph_rows)
        most, limit = n_rows - 2, f"the {max(n_rows - 2, 0)} eigenmaps of a graph of {n_rows} rows"
    else:
        most, limit = facts.n_rows, f"the {facts.n_rows} rows to learn from"
    if most < 1 or (is_asked and wanted > most):
        raise InputError(
            f"n_components={wanted} is more than {limit}: give more rows, or take fewer maps"
        )
    return min(int(wanted), most)


def check_relevance(settings: Settings) -> None:
    """Refuse a keyword that the solver would ignore."""
    solver, weighting = settings.solver, settings.asked.get("weighting")
    refused, remedy = "", ""
    if solver == "sequential":
        if "smoothness" in settings.asked:
            refused, remedy = "smoothness", "its weighting decides"
        elif isinstance(weighting, Static) and weighting.prefix is not None:
            refused, remedy = "prefix", 'it needs "nested"'
    elif weighting is None:
        return
    elif solver == "spectral":
        refused, remedy = "weighting", "it uses no labels"
    elif not isinstance(weighting, Static):
        refused, remedy = repr(weighting), 'it needs "sequential"; take weighting=Static(orth=…)'
    elif (weighting.class_, weighting.mde) != (1.0, 1.0):
        refused, remedy = "class_ or mde", "smoothness weighs the energies"
    elif weighting.prefix is not None and solver != "nested":
        refused, remedy = "prefix", 'it needs "nested"'
    if refused:
        raise InputError(f'{refused} has no meaning with solver="{solver}": {remedy}')
