"""Presets: named sets of keywords. A keyword that a user leaves at None is taken from here."""

from typing import Any

from piefs.errors import InputError

PAPER: dict[str, Any] = {
    "schedule": "sequential",
    "n_components": 16,
    "steps_per_component": 3750,  # 60,000 steps in all
    "batch_size": 2048,
    "shuffle_window": "auto",
    "learning_rate": 1e-3,
    "optimizer": "adam",
    "weight_decay": 0.0,
    "warmup": 0.0,
    "hidden": (64, 64, 64),
    "activation": "relu",
    "metric": "off",
    "metric_scope": "local",
    "metric_constraint": "volume",
    "metric_bound": None,
    "metric_depth": None,
    "metric_hidden": None,  # (64, 64), or (64, 64, 64) without labels: NOTATION.md, ruling 2
    "gram": "batch",
    "weighting": "exponential",
    "t_orth": 0.1,
    "t_class": 0.5,
    "normalize_weights": False,
    "orthogonality": 0.03,
    "smoothness": 3e-4,
    "prefix_weight": 3.0,
    "anisotropy": 0.0,
    "pretraining": None,
    "graph_rows": 1000,
    "whiten": False,
    "early_stopping": False,
    "patience": 5,
    "log_every": 250,
    "dtype": "float32",
}
"""The paper to the letter; where it is silent, the rulings in NOTATION.md."""

DEFAULT: dict[str, Any] = PAPER | {
    "schedule": "nested",
    "steps_per_component": "auto",
    "batch_size": "auto",
    "activation": "auto",
    "gram": "population",
    "learning_rate": 4e-3,
    "weight_decay": "auto",
    "warmup": 0.05,
    "graph_rows": 10_000,
    "whiten": True,
    "early_stopping": "auto",
    "patience": 10,
    "log_every": 50,
}
"""What we recommend: all maps at once, in order, exactly orthonormal on the training rows."""

FAST: dict[str, Any] = DEFAULT | {"n_components": 8, "steps_per_component": 500}
"""A first look, in seconds: fewer maps and steps."""

PRESETS: dict[str, dict[str, Any]] = {"paper": PAPER, "default": DEFAULT, "fast": FAST}

ONE_BY_ONE: dict[str, Any] = {
    "steps_per_component": 1000,
    "batch_size": 1024,
    "learning_rate": 5e-3,
    "weight_decay": 0.0,
    "activation": "gelu",
    "patience": 5,
    "log_every": 100,
}
"""What replaces a preset's own where a user asks it to train map after map: the gate of the
weights needs larger batches, and greedy maps fewer steps."""


def resolve(preset: str, **keywords: Any) -> dict[str, Any]:
    """The preset's keywords, with those that are not None put in their place."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    settings, given = PRESETS[preset], {k: v for k, v in keywords.items() if v is not None}
    if given.get("schedule") == "sequential" != settings["schedule"]:
        settings = settings | ONE_BY_ONE
    return settings | given
