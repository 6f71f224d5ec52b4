"""What is tried: the defaults first, then settings drawn at random.

The few that were seen to matter (LOG.md): decay and smoothness on few rows, the rate, the shape of
the networks, the number of maps, the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from piefs.training.config import Settings

Keywords = dict[str, Any]


def _log_uniform(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")


def _one_of(*values: Any) -> Callable[[np.random.Generator], Any]:
    return lambda rng: values[rng.integers(len(values))]


SPACE: dict[str, Callable[[np.random.Generator], Any]] = {
    "smoothness": _log_uniform(3e-5, 0.1),
    "weight_decay": _one_of("auto", 0.1, 0.3, 1.0, 3.0, 10.0),
    "learning_rate": _log_uniform(1e-3, 1e-2),
    "hidden": _one_of((64, 64, 64), (64, 64), (128, 128), (32, 32, 32)),
    "activation": _one_of("relu", "silu", "gelu"),
    "n_components": _one_of(4, 8, 16, 32),
    "metric": _one_of("off", "off", "diag", "agop"),
}

SHARE_CHANGED = 0.5
"""Each setting of a candidate differs from the default with this probability: near the defaults,
which are good, there is more to find than far away."""


def candidate(index: int, seed: int, fixed: Keywords) -> Keywords:
    """Candidate 0 has the defaults; each other one is drawn by its index, alone.

    What is `fixed` is the same in all of them.
    """
    space = open_to_choice(fixed)
    if index == 0 or not space:
        return dict(fixed)
    rng = np.random.default_rng((seed, index))
    drawn = {name: draw(rng) for name, draw in space.items()}
    changed = rng.random(len(space)) < SHARE_CHANGED
    changed[rng.integers(len(space))] = True  # a copy of the defaults would tell nothing
    kept = {name: drawn[name] for name, is_new in zip(space, changed, strict=True) if is_new}
    return kept | fixed


def open_to_choice(fixed: Keywords) -> dict[str, Callable[[np.random.Generator], Any]]:
    """The settings that are not fixed and mean something to the schedule that is."""
    preset, schedule = fixed.get("preset", "default"), fixed.get("schedule")
    solver = Settings.of(preset, solver=schedule).solver
    return {
        name: draw
        for name, draw in SPACE.items()
        if name not in fixed and (name != "smoothness" or solver != "sequential")
    }
