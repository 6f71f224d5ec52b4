"""Settings of models that are trained in a second or two."""

from dataclasses import replace
from typing import Any

from piefs.core.weighting import Dampened, Static
from piefs.estimators.format2 import BECAME
from piefs.training.config import PAPER, PRESETS, Settings

SMALL: dict[str, Any] = {
    "n_components": 3,
    "steps_per_component": 60,
    "batch_size": 64,
    "hidden": (16, 16),
    "metric_hidden": (8,),
    "early_stopping": False,
    "random_state": 0,
    "log_every": 20,
}


def flat(**words: Any) -> dict[str, Any]:
    """An estimator's keywords, in flat words, so that each of them can be replaced alone."""
    found: dict[str, Any] = {}
    for name, value in words.items():
        keyword, _, part = BECAME.get(name, name).partition(".")
        if not part or (name == "weighting" and not isinstance(value, str)):
            found[keyword] = value
        elif value is not None:
            found.setdefault(keyword, {})[part] = value
    return found


def settings(**flat: Any) -> Settings:
    """Settings of the paper, all in flat words, such as metric="diag", metric_hidden=(8,)."""
    return changed(replace(PAPER, optimizer=replace(PAPER.optimizer, patience=3)), **flat)


def changed(before: Settings, **flat: Any) -> Settings:
    """Settings with others in their place, in flat words, too; `patience` stops early."""
    solver = flat.pop("schedule", before.solver)
    found = replace(before, solver=solver, early_stopping=flat.get("patience") is not None)
    if solver != "sequential" and isinstance(found.weighting, Dampened):
        found = replace(found, weighting=Static(orth=0.1, prefix=1.0), smoothness=1e-3)
    for name, value in flat.items():
        keyword, _, part = BECAME.get(name, name).partition(".")
        if name in ("gram", "weighting"):
            found = replace(found, **{name: value})
        elif not part:
            found = replace(found, **{keyword: value})
        elif value is not None or name != "patience":
            found = replace(found, **{keyword: replace(getattr(found, keyword), **{part: value})})
    return found


def preset(**changes: Any) -> str:
    """The name of a preset that is the default one but for these settings."""
    name = f"default with {changes}"
    PRESETS[name] = replace(PRESETS["default"], preset=name, **changes)
    return name
