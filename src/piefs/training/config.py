"""Everything that decides a training run, apart from the data."""

from __future__ import annotations

from dataclasses import dataclass, field

from piefs.core.metric import MetricFactory
from piefs.core.weighting import Dampened, Weighting


@dataclass(frozen=True)
class Optimizer:
    """Adam or momentum (`sgd`); the rate climbs over a share `warmup` of the steps, then falls."""

    direction: str = "adam"
    warmup: float = 0.0


DIRECTIONS = ("adam", "sgd")
SCHEDULES = ("sequential", "joint", "nested", "spectral")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run, apart from the data. Defaults are the paper's.

    `gram` says whose Gram error is taken: the "batch"'s own (the paper) or an unbiased estimate of
    the "population"'s. `weighting` belongs to the sequential schedule; `orthogonality`,
    `smoothness` and `prefix_weight` to the joint and nested ones (see `JointObjective`).
    `steps_per_component` is the number of steps that each map takes: in turn, or all at once.

    `shuffle_window` is the number of rows within which they are shuffled, None for all of them.

    With `patience`, a turn is over before its budget is spent when that many intervals of
    `log_every` steps in a row have lowered none of the three losses on the validation rows by
    `tolerance`, relatively. (Their weighted sum would not do: its weights change as they fall.)
    Where all maps descend at once, it is the readout's loss alone that counts.
    """

    schedule: str = "sequential"
    n_components: int = 16
    steps_per_component: int = 3750
    batch_size: int = 2048
    shuffle_window: int | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    optimizer: Optimizer = field(default_factory=Optimizer)
    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "relu"
    metric: str | MetricFactory = "off"
    metric_hidden: tuple[int, ...] = (64, 64)
    gram: str = "batch"
    metric_scope: str = "local"
    metric_constraint: str = "volume"
    metric_bound: float | None = None
    metric_depth: int | None = None
    weighting: Weighting = field(default_factory=Dampened)
    orthogonality: float = 0.1
    smoothness: float = 1e-3
    prefix_weight: float = 1.0
    anisotropy: float = 0.0
    patience: int | None = None
    tolerance: float = 1e-3
    log_every: int = 250
    seed: int = 0

    @property
    def maps_at_once(self) -> int:
        """How many maps descend together."""
        return 1 if self.schedule == "sequential" else self.n_components

    @property
    def total_steps(self) -> int:
        """The steps of all turns, if none stops early."""
        return self.steps_per_component * (self.n_components // self.maps_at_once)
