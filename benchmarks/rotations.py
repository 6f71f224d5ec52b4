"""The price of a rotation: a training step with each family, relative to `trotter`, in one run.

`python -m benchmarks rotations`. Steps of one map at d = 784, with U(x) from a network (local) and
with one U for all points (global).
"""

import gc
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from benchmarks.timing import interleaved
from piefs.batches import Batch
from piefs.losses import init_readout
from piefs.maps import init_map
from piefs.metrics import init_metric
from piefs.objective import Objective, Trainable, descend
from piefs.optimizers import Optimizer
from piefs.weighting import Dampened

N_FEATURES, BATCH, N_STEPS, N_CLASSES, N_COMPONENTS = 784, 256, 6, 10, 16

VARIANTS: dict[str, dict[str, Any]] = {
    "trotter": {"metric": "trotter"},
    "cayley": {"metric": "cayley"},
    "butterfly": {"metric": "butterfly"},
    "off": {"metric": "off"},
    "butterfly, global": {"metric": "butterfly", "scope": "global"},
    "agop": {"metric": "agop"},
    "householder": {"metric": "householder"},
    "exponential": {"metric": "exponential"},
    "diag": {"metric": "diag"},
}


@dataclass
class Steps:
    """A chunk of batches to step through."""

    options: dict[str, Any]

    def __post_init__(self) -> None:
        key, rng = jax.random.key(0), np.random.default_rng(0)
        options = dict(self.options)
        metric = init_metric(options.pop("metric"), key, N_FEATURES, dtype=np.float32, **options)
        self.params = Trainable(
            init_map(key, N_FEATURES, dtype=np.float32),
            metric,
            init_readout(N_CLASSES, N_COMPONENTS, dtype=np.float32),
        )
        self.opt_state = Optimizer().init(self.params)
        shape, ones = (N_STEPS, BATCH), np.ones((N_STEPS, BATCH), np.float32)
        self.chunk = jax.device_put(
            Batch(
                rng.standard_normal((*shape, N_FEATURES), dtype=np.float32),
                np.zeros((*shape, N_COMPONENTS), np.float32),
                rng.integers(0, N_CLASSES, shape).astype(np.int32),
                ones,
                ones,
            )
        )
        self.objective = Objective(Dampened())

    def __call__(self) -> None:
        """All steps of the chunk."""
        self.params, self.opt_state, sums = descend(
            self.params,
            self.opt_state,
            self.chunk,
            k=0,
            first_step=0,
            n_steps=N_STEPS,
            total_steps=3750,
            learning_rate=1e-3,
            objective=self.objective,
            optimizer=Optimizer(),
        )
        jax.block_until_ready(sums)


def run() -> dict[str, object]:
    """Milliseconds a step, and the ratio to `trotter`, whose turn comes before every other's."""
    rows = []
    trotter = Steps(VARIANTS["trotter"])
    for name, options in VARIANTS.items():
        other = Steps(options)
        medians = interleaved({"trotter": trotter, "other": other}, repeats=5)
        leaves = jax.tree.leaves(other.params.metric)
        rows.append(
            {
                "name": name,
                **options,
                "parameters": sum(leaf.size for leaf in leaves),
                "milliseconds": round(1000 * medians["other"] / N_STEPS, 2),
                "ratio_to_trotter": round(medians["other"] / medians["trotter"], 2),
            }
        )
        print(f"  {rows[-1]}", flush=True)
        del other
        gc.collect()
    return {"d": N_FEATURES, "batch": BATCH, "rows": rows}
