"""The settings of a fit, one frozen object, and the presets that they start from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from piefs.core.weighting import Dampened, Static
from piefs.errors import InputError
from piefs.training.checks import WIDTHS, check, require

ALL_AT_ONCE = Static(orth=0.03, prefix=3.0)  # the weights of maps that are trained together
UNSET: Any = None  # a field that takes the preset's value
AUTO: Any = "auto"  # decided from the data


@dataclass(frozen=True)
class Metric:
    """A(x) inside the Dirichlet energy ‖A∇φ‖²; docs/metrics.md describes the fields.

    `name` is that of a family, or a function (key, n_features) -> MetricField.
    """

    name: str | Callable = "off"
    scope: str = "local"
    constraint: str = "volume"
    bound: float | None = None
    depth: int | None = None
    hidden: tuple[int, ...] | None = None
    anisotropy: float = 0.0

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths of the hidden layers of Λ(x) and U(x)."""
        return (64, 64) if self.hidden is None else tuple(map(int, self.hidden))


@dataclass(frozen=True)
class Optimizer:
    """How descent steps; a field left out takes the preset's value.

    `name` is "adam" or "sgd" (momentum); the rate climbs over a share `warmup` of the steps. A run
    is recorded every `log_every` steps, and early stopping waits for `patience` such intervals.
    Rows are shuffled within a `shuffle_window`, "auto" being all of them unless they are in a file.
    """

    name: str = UNSET
    warmup: float = UNSET
    patience: int = UNSET
    log_every: int = UNSET
    shuffle_window: Any = UNSET
    dtype: str = UNSET

    @property
    def rule(self) -> "Optimizer":
        """What decides a step: programs are compiled for each rule."""
        return Optimizer(self.name, float(self.warmup))


@dataclass(frozen=True)
class Settings:
    """All that decides a fit apart from the data. `of` makes one from a preset and keywords.

    "auto" stands for what `estimators.decisions` works out from the data. `smoothness` is a pure
    number, in units of the energy of the smoothest linear coordinate: of 1/leading_variance.
    """

    preset: str = "default"
    solver: str = AUTO
    n_components: int = 16
    steps_per_component: int = AUTO
    batch_size: int = AUTO
    learning_rate: float = 4e-3
    weight_decay: float = AUTO
    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "auto"
    metric: Metric = Metric()
    smoothness: float = 3e-4
    weighting: Any = ALL_AT_ONCE
    gram: str = "population"
    optimizer: Optimizer = Optimizer("adam", 0.05, 10, 50, "auto", "float32")
    early_stopping: Any = "auto"
    held_out: float = 0.15
    pretraining: str | None = None
    graph_rows: int = 10_000
    whiten: bool = True
    seed: int = 0
    leading_variance: float = field(default=1.0, compare=False)
    asked: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, preset: str = "default", **keywords: Any) -> "Settings":
        """The preset with the keywords that are not None in place of its own."""
        if not isinstance(preset, str) or preset not in PRESETS:
            raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
        settings = PRESETS[preset]
        asked = {name: value for name, value in keywords.items() if value is not None}
        for name in ("solver", "metric"):
            if isinstance(asked.get(name), str) and asked[name] == "auto":
                del asked[name]
        solver = asked.get("solver", settings.solver)
        if solver == "sequential" != settings.solver:
            settings = replace(settings, **ONE_BY_ONE)
        found = asked | {"asked": asked}
        if "metric" in asked:
            asked["metric"] = found["metric"] = _as(Metric, "name", asked["metric"])
        if "optimizer" in asked:
            asked["optimizer"] = _as(Optimizer, "name", asked["optimizer"])
            found["optimizer"] = _filled(asked["optimizer"], settings.optimizer)
        if "hidden" in asked:
            require("hidden", asked["hidden"], WIDTHS)
            found["hidden"] = tuple(map(int, asked["hidden"]))
        usual = settings.weighting
        if isinstance(usual, Dampened) != (solver == "sequential"):
            usual = Dampened() if solver == "sequential" else ALL_AT_ONCE
        found["weighting"] = usual
        if "weighting" in asked:
            asked["weighting"] = _as_weighting(asked["weighting"], solver)
            found["weighting"] = _filled(asked["weighting"], usual)
            found["gram"] = getattr(asked["weighting"], "gram", None) or settings.gram
        share = asked.get("early_stopping")
        if isinstance(share, float | np.floating):
            found |= {"early_stopping": True, "held_out": float(share)}
        elif isinstance(share, int | np.bool_):
            found["early_stopping"] = bool(share)
        settings = replace(settings, **found)
        check(settings)
        return settings

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Settings":
        """The settings that `document` has described, checked."""
        weighting, is_known = document["weighting"], isinstance(document["weighting"], Mapping)
        parts: dict[str, Any] = {
            "metric": _as(Metric, "name", document["metric"]),
            "optimizer": _as(Optimizer, "name", document["optimizer"]),
            "hidden": tuple(document["hidden"]),
            # A function, of which there is the name only, mattered in training alone.
            "weighting": _as_weighting(weighting, document["solver"]) if is_known else Static(),
        }
        settings = cls(**{**document, **parts})
        check(settings)
        return settings

    def document(self) -> dict[str, Any]:
        """The settings as plain values; a function is named by its repr."""
        hidden = ("leading_variance", "asked")
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name not in hidden}

    @property
    def maps_at_once(self) -> int:
        """How many maps descend together."""
        return 1 if self.solver == "sequential" else self.n_components

    @property
    def total_steps(self) -> int:
        """The steps of all turns, if none stops early."""
        return self.steps_per_component * (self.n_components // self.maps_at_once)

    @property
    def chooses_n_components(self) -> bool:
        """Whether as few maps are kept as do."""
        return self.asked.get("n_components") == "auto"

    @property
    def energy_weight(self) -> float:
        """What multiplies the energies in the loss of all maps at once."""
        return float(self.smoothness) * self.leading_variance


PAPER = Settings(
    preset="paper",
    solver="sequential",
    steps_per_component=3750,  # 60,000 steps in all
    batch_size=2048,
    learning_rate=1e-3,
    weight_decay=0.0,
    activation="relu",
    weighting=Dampened(),
    gram="batch",
    optimizer=Optimizer("adam", 0.0, 5, 250, "auto", "float32"),
    early_stopping=False,
    graph_rows=1000,
    whiten=False,
)
"""The paper to the letter; NOTATION.md has the rulings for what it leaves open."""

PRESETS: dict[str, Settings] = {
    "paper": PAPER,
    "default": Settings(),  # what we recommend: all maps at once, in order, orthonormal
    "fast": Settings(preset="fast", n_components=8, steps_per_component=500),
}

# What replaces a preset's own if maps are trained one by one: gated weights need larger batches,
# and greedy maps fewer steps.
ONE_BY_ONE: dict[str, Any] = {
    "steps_per_component": 1000,
    "batch_size": 1024,
    "learning_rate": 5e-3,
    "weight_decay": 0.0,
    "activation": "gelu",
    "optimizer": Optimizer("adam", 0.05, 5, 100, "auto", "float32"),
}


def _as(kind: type, first: str, value: Any) -> Any:
    """An object from itself, a mapping of its fields, or its first field alone."""
    if isinstance(value, Mapping):
        known = [f.name for f in fields(kind)]
        for name in value:
            if name not in known:
                raise InputError(f"{kind.__name__} has no field {name!r}: {', '.join(known)}")
        found = kind(**value)
    else:
        found = value if isinstance(value, kind) else kind(**{first: value})
    hidden = getattr(found, "hidden", None)
    return replace(found, hidden=tuple(hidden)) if isinstance(hidden, list) else found


def _as_weighting(value: Any, solver: str) -> Any:
    """A weighting from an object, a function, a name, or a mapping of its fields."""
    if value == "static":
        return Static()
    if isinstance(value, str):
        return Dampened(value)
    if not isinstance(value, Mapping):
        return value
    own = {kind: {f.name for f in fields(kind)} - {"gram"} for kind in (Dampened, Static)}
    usual, other = (Dampened, Static) if solver == "sequential" else (Static, Dampened)
    return _as(other if own[other] & set(value) else usual, "gram", value)


def _filled(given: Any, usual: Any) -> Any:
    """An object with the usual values for the fields that it leaves out."""
    if type(given) is not type(usual):
        return given
    left_out = [f.name for f in fields(given) if getattr(given, f.name) is None]
    return replace(given, **{name: getattr(usual, name) for name in left_out})


def _plain(value: Any) -> Any:
    if is_dataclass(value) and type(value) in (Metric, Optimizer, Dampened, Static):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [int(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | None) else repr(value)
