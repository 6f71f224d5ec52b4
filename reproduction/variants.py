"""What the runs change in the preset `paper`: one name a change, as it stands in a cell's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from piefs.core.weighting import LossWeights, Static, Weighting

FRESH_SPLIT = "fresh-split"
"""As the paper has it, but with the rows dealt again for each seed."""

WEIGHT_FACTORS: dict[str, dict[str, float]] = {
    "no-orthogonality": {"orth": 0.0},
    "no-smoothness": {"mde": 0.0},
    "smoothness-0.1": {"mde": 0.1},
    "smoothness-0.02": {"mde": 0.02},
}
"""By what a variant multiplies weights: dynamic ones with labels, static ones without (App. C)."""


@dataclass(frozen=True)
class Scaled:
    """Another weighting, its weights multiplied by constants: 0 takes a loss away."""

    base: Weighting
    orth: float = 1.0
    class_: float = 1.0
    mde: float = 1.0

    def __call__(self, gram_error: Any, class_loss: Any) -> LossWeights:
        """The base's weights, scaled."""
        orth, class_, mde = self.base(gram_error, class_loss)
        return LossWeights(self.orth * orth, self.class_ * class_, self.mde * mde)


READINGS: dict[str, dict[str, Any]] = {
    "sgd-momentum": {"optimizer": "sgd", "learning_rate": 1e-2},
    "metric-two-layers": {"metric": {"hidden": (64, 64)}},
    "metric-three-layers": {"metric": {"hidden": (64, 64, 64)}},
}
"""Where the paper's words can be taken otherwise than the preset takes them (NOTATION.md)."""

VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "laplacian-calibrated": {
        "pretraining": "graph-laplacian",
        "weighting": {"t_class": "calibrated"},
    },
    "laplacian-frozen": {"pretraining": "graph-laplacian"},
    "anisotropy": {"metric": {"anisotropy": 0.1}},
    "no-gate": {"weighting": Static()},
    "at-once": {"solver": "joint", "weighting": {"orth": 1.0}},
    "weighting-rational": {"weighting": "rational"},
    "weighting-polynomial": {"weighting": "polynomial"},
    "weighting-normalized": {"weighting": {"normalize": True}},
    "t-orth-0.01": {"weighting": {"t_orth": 0.01}},
    "t-orth-1": {"weighting": {"t_orth": 1.0}},
    "t-class-0.1": {"weighting": {"t_class": 0.1}},
    "t-class-2": {"weighting": {"t_class": 2.0}},
    **{f"batch-{size}": {"batch_size": size} for size in (256, 512, 1024, 4096)},
    # 60,000 steps in all, as with 16 maps
    **{f"maps-{k}": {"n_components": k, "steps_per_component": 60_000 // k} for k in (3, 4, 8)},
    **{name: {} for name in WEIGHT_FACTORS},
    FRESH_SPLIT: {},
    **READINGS,
}
"""What a variant changes in the preset `paper`, factors of weights apart."""

QUICK: dict[str, Any] = {"n_components": 3, "steps_per_component": 30, "batch_size": 256}
"""Budgets that go the whole way in minutes and prove nothing but that it works."""
