"""Our own gradient steps, ready to be timed: the peers' environment is not needed for them."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from piefs.core.losses import init_readout
from piefs.core.maps import init_map
from piefs.core.metric import init_metric
from piefs.core.networks import generator
from piefs.core.objectives import Batch, SequentialObjective, Trainable
from piefs.core.weighting import Dampened
from piefs.training.config import Optimizer
from piefs.training.step import Steps, begun, descend

N_FROZEN, N_COMPONENTS, N_CLASSES = 8, 16, 10


@dataclass
class Descent:
    """A chunk of batches, stepped through by `piefs.training.step.descend`."""

    d: int
    batch: int
    metric: str
    n_steps: int
    n_frozen: int = N_FROZEN
    metric_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        key, rng = generator(0), np.random.default_rng(0)
        self.params = Trainable(
            init_map(key, self.d, dtype=np.float32),
            init_metric(self.metric, key, self.d, dtype=np.float32, **self.metric_options),
            init_readout(N_CLASSES, N_COMPONENTS, dtype=np.float32),
        )
        self.opt_state = begun(Optimizer("adam", 0.0), self.params)
        n, ones = (self.n_steps, self.batch), np.ones((self.n_steps, self.batch), np.float32)
        frozen = rng.standard_normal((*n, N_COMPONENTS), dtype=np.float32)
        frozen[..., self.n_frozen :] = 0
        chunk = Batch(
            rng.standard_normal((*n, self.d), dtype=np.float32),
            frozen,
            rng.integers(0, N_CLASSES, n).astype(np.int32),
            ones,
            ones,
        )
        self.chunk = jax.device_put(chunk)
        self.objective = SequentialObjective(Dampened(), k=self.n_frozen)

    def __call__(self) -> None:
        """All steps of the chunk."""
        self.params, self.opt_state, sums, _ = descend(
            self.params,
            self.opt_state,
            self.chunk,
            self.objective,
            Steps(0, self.n_steps, 3750, 1e-3),
            optimizer=Optimizer("adam", 0.0),
        )
        jax.block_until_ready(sums)
