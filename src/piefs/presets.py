"""Presets: named sets of keywords. A keyword that a user leaves at None is taken from here."""

from typing import Any

from piefs.errors import InputError

PAPER: dict[str, Any] = {
    "n_components": 16,
    "steps_per_component": 3750,  # 60,000 steps in all
    "batch_size": 2048,
    "learning_rate": 1e-3,
    "optimizer": "adam",
    "hidden": (64, 64, 64),
    "activation": "relu",
    "metric": "off",
    "metric_hidden": None,  # (64, 64), or (64, 64, 64) without labels: NOTATION.md, ruling 2
    "weighting": "exponential",
    "t_orth": 0.1,
    "t_class": 0.5,
    "normalize_weights": False,
    "anisotropy": 0.0,
    "pretraining": None,
    "early_stopping": False,
    "patience": 5,
    "log_every": 250,
    "dtype": "float32",
}
"""The paper to the letter; where it is silent, the rulings in NOTATION.md."""

DEFAULT: dict[str, Any] = PAPER | {
    "steps_per_component": 1000,
    "batch_size": 1024,
    "learning_rate": 5e-3,
    "activation": "gelu",
    "early_stopping": "auto",
    "log_every": 100,
}
"""What we recommend: smooth maps, which learn faster and have no kinks for the energy to miss."""

FAST: dict[str, Any] = DEFAULT | {
    "n_components": 8,
    "steps_per_component": 400,
    "batch_size": 512,
    "log_every": 50,
}
"""A first look, in seconds: fewer maps, steps and rows a step."""

PRESETS: dict[str, dict[str, Any]] = {"paper": PAPER, "default": DEFAULT, "fast": FAST}


def resolve(preset: str, **keywords: Any) -> dict[str, Any]:
    """The preset's keywords, with those that are not None put in their place."""
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    return PRESETS[preset] | {name: value for name, value in keywords.items() if value is not None}
