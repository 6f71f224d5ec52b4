"""From keywords and a preset to one `TrainConfig`, checked before any work starts."""

from __future__ import annotations

from collections.abc import Sized
from numbers import Integral
from typing import Any

import numpy as np

from piefs.core.choices import ACTIVATIONS, CONSTRAINTS, METRICS, SCOPES, check_options
from piefs.core.weighting import WEIGHTINGS, Static, make_weighting
from piefs.errors import InputError
from piefs.training.config import DIRECTIONS, SCHEDULES, Optimizer, TrainConfig
from piefs.training.presets import resolve

CHOICES: dict[str, tuple] = {
    "schedule": SCHEDULES,
    "metric": METRICS,
    "metric_scope": SCOPES,
    "metric_constraint": CONSTRAINTS,
    "activation": (*ACTIVATIONS, "auto"),
    "optimizer": DIRECTIONS,
    "gram": ("batch", "population"),
    "weighting": WEIGHTINGS,
    "pretraining": ("graph-laplacian", None),
    "dtype": ("float32", "float64"),
    "early_stopping": (True, False, "auto"),
    "whiten": (True, False),
}
COUNTS = (
    "n_components",
    "steps_per_component",
    "batch_size",
    "shuffle_window",
    "graph_rows",
    "patience",
    "log_every",
)
POSITIVE = ("learning_rate", "t_orth")
NOT_NEGATIVE = ("anisotropy", "orthogonality", "smoothness", "prefix_weight", "weight_decay")

BELONGS_TO: dict[str, tuple[str, ...]] = {
    "gram": ("sequential", "joint", "nested"),
    "weighting": ("sequential",),
    "t_orth": ("sequential",),
    "t_class": ("sequential",),
    "normalize_weights": ("sequential",),
    "orthogonality": ("joint", "nested"),
    "smoothness": ("joint", "nested", "spectral"),
    "prefix_weight": ("nested",),
}
"""Keywords that mean something to some schedules only."""

METRIC_OPTIONS = ("metric_scope", "metric_constraint", "metric_bound", "metric_depth")
"""Keywords that mean something to named metrics other than "off" only."""

PASSES, FEWEST_STEPS, MOST_STEPS = 16, 2000, 20_000
"""The rule for steps_per_component="auto": passes over the rows, within limits."""

BATCHES_A_PASS, SMALL_BATCH, LARGE_BATCH = 8, 64, 256
"""The rule for batch_size="auto": an eighth of the rows, within limits."""

WEIGHT_DECAYS = (0.3, 3.0, 10.0)
"""What weight_decay="auto" chooses from where the number of steps is chosen; else it is the first.
"""


def resolve_settings(
    preset: str, keywords: dict[str, Any], *, supervised: bool, n_rows: int
) -> dict[str, Any]:
    """Keywords over preset, checked, with what depends on mode and data filled in."""
    settings = resolve(preset, **keywords)
    check(settings)
    _check_auto_components(settings, supervised)
    settings["schedule"] = _schedule(settings["schedule"], keywords, supervised, n_rows)
    if settings["schedule"] == "spectral" and settings["early_stopping"] not in (False, "auto"):
        raise InputError(
            'early_stopping watches a loss on labels, and schedule="spectral" looks at none until '
            "its steps are over: leave it out"
        )
    _check_belonging(settings["schedule"], keywords)
    _check_metric(settings, keywords)
    if settings["n_components"] == "auto":
        pass  # decided while fitting, within what the rows allow
    elif keywords.get("n_components") is None:
        settings["n_components"] = min(settings["n_components"], n_rows)
    elif settings["n_components"] > n_rows:
        raise InputError(
            f"n_components={settings['n_components']} is more than the {n_rows} rows to learn "
            "from: more orthonormal coordinates than rows cannot exist"
        )
    if settings["schedule"] == "spectral":
        n_rows = min(n_rows, settings["graph_rows"])
        settings["n_components"] = _maps_of_a_graph(settings, keywords, n_rows)
    if settings["batch_size"] == "auto":
        settings["batch_size"] = min(max(n_rows // BATCHES_A_PASS, SMALL_BATCH), LARGE_BATCH)
    settings["batch_size"] = min(settings["batch_size"], n_rows)
    if settings["steps_per_component"] == "auto":
        wanted = round(PASSES * n_rows / settings["batch_size"])
        settings["steps_per_component"] = min(max(wanted, FEWEST_STEPS), MOST_STEPS)
    if settings["metric_hidden"] is None:
        settings["metric_hidden"] = (64, 64) if supervised else (64, 64, 64)
    if not supervised and isinstance(settings["weighting"], str):
        settings["weighting"] = Static(1.0, 0.0, 1.0)
    if settings["t_class"] == "calibrated" and settings["pretraining"] is None:
        raise InputError('t_class="calibrated" needs pretraining="graph-laplacian"')
    return settings


def _maps_of_a_graph(settings: dict[str, Any], keywords: dict[str, Any], n_rows: int) -> int:
    """How many maps: a graph has as many eigenmaps as points, less the constant and the last."""
    most = n_rows - 2
    if most < 1 or (keywords.get("n_components") or 0) > most:
        raise InputError(
            f"a graph of {n_rows} rows has {max(most, 0)} eigenmaps to learn, and "
            f"n_components={settings['n_components']} asks for more: give more rows (or graph_rows)"
            ', or take fewer maps or schedule="joint"'
        )
    return min(settings["n_components"], most)


def n_rows_to_learn_from(schedule: str | None, rows: Sized, unlabeled: Sized | None) -> int:
    """The rows that settings follow from: a graph does not tell labelled from unlabelled ones."""
    return len(rows) + (len(unlabeled) if schedule == "spectral" and unlabeled is not None else 0)


def _check_auto_components(settings: dict[str, Any], supervised: bool) -> None:
    """Refuse to choose a number of maps where nothing says which is better."""
    if settings["n_components"] != "auto":
        return
    if not supervised:
        raise InputError(
            'n_components="auto" needs labels, since the loss on held-out ones says how many maps '
            "do: give their number, or fit with labels"
        )
    if settings["schedule"] not in ("nested", "sequential"):
        raise InputError(
            f'n_components="auto" needs maps that have an order, and with schedule='
            f'"{settings["schedule"]}" they have none: take "nested" or "sequential"'
        )


def decays_for(weight_decay: float | str) -> tuple[float, ...]:
    """The weight decays to choose from: one, unless it is "auto"."""
    return WEIGHT_DECAYS if weight_decay == "auto" else (float(weight_decay),)


def _schedule(schedule: str, keywords: dict[str, Any], supervised: bool, n_rows: int) -> str:
    """The schedule that fits the mode: order by labels needs labels, and a graph needs rows."""
    if keywords.get("schedule") is None and schedule == "nested" and not supervised:
        n_components = keywords.get("n_components") or 1
        return "spectral" if n_rows >= n_components + 2 else "joint"
    if not supervised and schedule == "nested":
        raise InputError('schedule="nested" needs labels; without them use "spectral" or "joint"')
    return schedule


def _check_belonging(schedule: str, keywords: dict[str, Any]) -> None:
    """Refuse a keyword that would be ignored."""
    for name, schedules in BELONGS_TO.items():
        if keywords.get(name) is not None and schedule not in schedules:
            listed = " or ".join(f'schedule="{one}"' for one in schedules)
            raise InputError(f'{name} has no meaning with schedule="{schedule}": it needs {listed}')


def _check_metric(settings: dict[str, Any], keywords: dict[str, Any]) -> None:
    """Refuse what the metric would ignore."""
    metric = settings["metric"]
    given = [name for name in METRIC_OPTIONS if keywords.get(name) is not None]
    if callable(metric) and given:
        raise InputError(f"{given[0]} is for named metrics: a function decides it by itself")
    if metric == "off" and given:
        raise InputError(f'{given[0]} has no meaning with metric="off"')
    if metric == "agop" and keywords.get("anisotropy"):
        raise InputError(
            'anisotropy is a penalty on a metric that is learned by descent; "agop" is not: use '
            "metric_bound"
        )
    if not callable(metric):
        check_options(metric, settings["metric_scope"], settings["metric_depth"])


def check(settings: dict[str, Any]) -> None:
    """Refuse what cannot be trained, saying what would be accepted."""
    for name in COUNTS:
        value = settings[name]
        if name in ("n_components", "steps_per_component", "batch_size") and value == "auto":
            continue
        if name == "shuffle_window" and value in ("auto", None):  # None, once decided: all rows
            continue
        if not _is_count(value):
            raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
    for name in POSITIVE:
        _check_number(name, settings[name], above=0)
    if settings["t_class"] != "calibrated":
        _check_number("t_class", settings["t_class"], above=0)
    for name in NOT_NEGATIVE:
        if name == "weight_decay" and settings[name] == "auto":
            continue
        _check_number(name, settings[name], at_least=0)
    if not (_is_number(settings["warmup"]) and 0 <= settings["warmup"] < 1):
        raise InputError(f"warmup must be a share of the steps below 1, not {settings['warmup']!r}")
    if settings["metric_bound"] is not None:
        _check_number("metric_bound", settings["metric_bound"], above=0)
    depth = settings["metric_depth"]
    if depth is not None and not _is_count(depth):
        raise InputError(f"metric_depth must be a whole number of at least 1, not {depth!r}")
    for name in ("hidden", "metric_hidden"):
        _check_widths(name, settings[name])
    for name, allowed in CHOICES.items():
        value = settings[name]
        if not callable(value) and value not in allowed:
            listed = ", ".join(map(str, allowed))
            raise InputError(f"unknown {name} {value!r}; choose one of {listed}")


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _check_number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None
) -> None:
    number = _is_number(value)
    if above is not None and not (number and value > above):
        raise InputError(f"{name} must be a number above {above}, not {value!r}")
    if at_least is not None and not (number and value >= at_least):
        raise InputError(f"{name} must be a number of at least {at_least}, not {value!r}")


def _check_widths(name: str, value: Any) -> None:
    if value is None and name == "metric_hidden":
        return
    widths = list(value) if isinstance(value, tuple | list) else []
    if not widths or not all(isinstance(w, Integral) and int(w) > 0 for w in widths):
        raise InputError(f"{name} must list the widths of the hidden layers, not {value!r}")


def train_config(
    settings: dict[str, Any], *, seed: int, squared_length: float = 1.0
) -> TrainConfig:
    """The settings as the frozen dataclass that training takes.

    `squared_length` is the data's leading variance, which turns the pure number `smoothness` into
    a weight of energies: a linear coordinate along that direction has energy 1/squared_length.
    """
    weighting = settings["weighting"]
    if isinstance(weighting, str):
        weighting = make_weighting(
            weighting, settings["t_orth"], settings["t_class"], settings["normalize_weights"]
        )
    return TrainConfig(
        schedule=settings["schedule"],
        n_components=int(settings["n_components"]),
        steps_per_component=int(settings["steps_per_component"]),
        batch_size=int(settings["batch_size"]),
        shuffle_window=settings["shuffle_window"],
        learning_rate=float(settings["learning_rate"]),
        weight_decay=decays_for(settings["weight_decay"])[0],
        optimizer=Optimizer(settings["optimizer"], float(settings["warmup"])),
        hidden=tuple(map(int, settings["hidden"])),
        activation=settings["activation"],
        metric=settings["metric"],
        metric_hidden=tuple(map(int, settings["metric_hidden"])),
        gram=settings["gram"],
        metric_scope=settings["metric_scope"],
        metric_constraint=settings["metric_constraint"],
        metric_bound=None if settings["metric_bound"] is None else float(settings["metric_bound"]),
        metric_depth=None if settings["metric_depth"] is None else int(settings["metric_depth"]),
        weighting=weighting,
        orthogonality=float(settings["orthogonality"]),
        smoothness=float(settings["smoothness"]) * squared_length,
        prefix_weight=float(settings["prefix_weight"]),
        anisotropy=float(settings["anisotropy"]),
        patience=int(settings["patience"]) if settings["early_stopping"] else None,
        log_every=int(settings["log_every"]),
        seed=seed,
    )


def described(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as plain values for a document; an object is named by its repr.

    What the schedule or the metric does not use is None.
    """
    schedule = settings["schedule"]

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [int(item) for item in value]
        return value if isinstance(value, str | int | float | None) else repr(value)

    unused = {name for name, schedules in BELONGS_TO.items() if schedule not in schedules}
    if settings["metric"] == "off" or callable(settings["metric"]):
        unused |= set(METRIC_OPTIONS)
    return {name: None if name in unused else plain(value) for name, value in settings.items()}
