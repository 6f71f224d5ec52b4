"""From keywords and a preset to one `TrainConfig`, checked before any work starts."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from piefs.errors import InputError
from piefs.metrics import METRICS
from piefs.networks import ACTIVATIONS
from piefs.objective import OPTIMIZERS
from piefs.presets import resolve
from piefs.train import TrainConfig
from piefs.weighting import WEIGHTINGS, Static, make_weighting

CHOICES: dict[str, tuple] = {
    "metric": METRICS,
    "activation": tuple(ACTIVATIONS),
    "optimizer": tuple(OPTIMIZERS),
    "weighting": WEIGHTINGS,
    "pretraining": ("graph-laplacian", None),
    "dtype": ("float32", "float64"),
    "early_stopping": (True, False, "auto"),
}
COUNTS = ("n_components", "steps_per_component", "batch_size", "patience", "log_every")
POSITIVE = ("learning_rate", "t_orth")


def resolve_settings(
    preset: str, keywords: dict[str, Any], *, supervised: bool, n_rows: int
) -> dict[str, Any]:
    """Keywords over preset, checked, with what depends on mode and data filled in."""
    settings = resolve(preset, **keywords)
    check(settings)
    if keywords.get("n_components") is None:
        settings["n_components"] = min(settings["n_components"], n_rows)
    elif settings["n_components"] > n_rows:
        raise InputError(
            f"n_components={settings['n_components']} is more than the {n_rows} rows to learn "
            "from: more orthonormal coordinates than rows cannot exist"
        )
    settings["batch_size"] = min(settings["batch_size"], n_rows)
    if settings["metric_hidden"] is None:
        settings["metric_hidden"] = (64, 64) if supervised else (64, 64, 64)
    if not supervised and isinstance(settings["weighting"], str):
        settings["weighting"] = Static(1.0, 0.0, 1.0)
    if settings["t_class"] == "calibrated" and settings["pretraining"] is None:
        raise InputError('t_class="calibrated" needs pretraining="graph-laplacian"')
    return settings


def check(settings: dict[str, Any]) -> None:
    """Refuse what cannot be trained, saying what would be accepted."""
    for name in COUNTS:
        value = settings[name]
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
    for name in POSITIVE:
        _check_number(name, settings[name], above=0)
    if settings["t_class"] != "calibrated":
        _check_number("t_class", settings["t_class"], above=0)
    _check_number("anisotropy", settings["anisotropy"], at_least=0)
    for name in ("hidden", "metric_hidden"):
        _check_widths(name, settings[name])
    for name, allowed in CHOICES.items():
        value = settings[name]
        if not callable(value) and value not in allowed:
            listed = ", ".join(map(str, allowed))
            raise InputError(f"unknown {name} {value!r}; choose one of {listed}")


def _check_number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None
) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
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


def train_config(settings: dict[str, Any], *, seed: int) -> TrainConfig:
    """The settings as the frozen dataclass that training takes."""
    weighting = settings["weighting"]
    if isinstance(weighting, str):
        weighting = make_weighting(
            weighting, settings["t_orth"], settings["t_class"], settings["normalize_weights"]
        )
    return TrainConfig(
        n_components=int(settings["n_components"]),
        steps_per_component=int(settings["steps_per_component"]),
        batch_size=int(settings["batch_size"]),
        learning_rate=float(settings["learning_rate"]),
        optimizer=settings["optimizer"],
        hidden=tuple(map(int, settings["hidden"])),
        activation=settings["activation"],
        metric=settings["metric"],
        metric_hidden=tuple(map(int, settings["metric_hidden"])),
        weighting=weighting,
        anisotropy=float(settings["anisotropy"]),
        patience=int(settings["patience"]) if settings["early_stopping"] else None,
        log_every=int(settings["log_every"]),
        seed=seed,
    )


def described(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as plain values for a document; an object is named by its repr."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [int(item) for item in value]
        return value if isinstance(value, str | int | float | None) else repr(value)

    return {name: plain(value) for name, value in settings.items()}
