"""What the flat keywords of earlier versions became."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

BECAME = {
    "schedule": "solver",
    "metric": "metric.name",
    **{f"metric_{name}": f"metric.{name}" for name in ("scope", "constraint", "bound", "depth")},
    "metric_hidden": "metric.hidden",
    "anisotropy": "metric.anisotropy",
    "optimizer": "optimizer.name",
    **{name: f"optimizer.{name}" for name in ("warmup", "patience", "log_every")},
    **{name: f"optimizer.{name}" for name in ("shuffle_window", "dtype")},
    "weighting": "weighting.dampening",
    "t_orth": "weighting.t_orth",
    "t_class": "weighting.t_class",
    "normalize_weights": "weighting.normalize",
    "orthogonality": "weighting.orth",
    "prefix_weight": "weighting.prefix",
    "gram": "weighting.gram",
}
"""Where each of them is now: a keyword, or a field of one that takes an object."""


def from_flat(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords that say what the flat ones said; those that are None say nothing."""
    found: dict[str, Any] = {}
    for name, value in flat.items():
        keyword, _, part = BECAME.get(name, name).partition(".")
        if value is None:
            continue
        if part:
            found.setdefault(keyword, {})[part] = value
        else:
            found[keyword] = value
    weighting = found.get("weighting", {})
    given = weighting.get("dampening")
    if given is not None and not isinstance(given, str):  # an object that has its own temperatures
        gram = weighting.get("gram")
        has_gram = gram is not None and hasattr(given, "gram")
        found["weighting"] = replace(given, gram=gram) if has_gram else given
    elif given == "static":
        found["weighting"] = {"orth": 1.0, "gram": weighting.get("gram")}
    return found


RENAMED = tuple(name for name in BECAME if name not in ("metric", "optimizer", "weighting"))


def merged(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """What flat keywords of earlier versions turn today's into."""
    for name in before:
        if name not in RENAMED:
            raise TypeError(f"unexpected keyword argument {name!r}")
    given = {name: value for name, value in before.items() if value is not None}
    found: dict[str, Any] = {}
    for keyword in {BECAME[name].partition(".")[0] for name in given}:
        own = {n: v for n, v in given.items() if BECAME[n].partition(".")[0] == keyword}
        value = now.get(keyword)
        if isinstance(value, Mapping):
            found[keyword] = {**value, **from_flat(own)[keyword]}
        else:
            found |= from_flat(own if value is None else {keyword: value, **own})
    return found
