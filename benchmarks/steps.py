"""Gradient steps a second: ours, the PyTorch reference, and what the matrix products allow."""

from dataclasses import dataclass

import jax
import numpy as np
import torch

from benchmarks.flops import step_flops
from benchmarks.machine import cores, multiply_rates
from benchmarks.reference import Trainer
from benchmarks.timing import interleaved
from piefs.batches import Batch
from piefs.losses import init_readout
from piefs.maps import init_map
from piefs.metrics import init_metric
from piefs.objective import Objective, Trainable, descend
from piefs.optimizers import Optimizer
from piefs.weighting import Dampened

N_FROZEN, N_COMPONENTS, N_CLASSES = 8, 16, 10
SHAPES = [
    (d, batch, metric)
    for d in (2, 8, 512, 784)
    for batch in (256, 2048)
    for metric in ("off", "diag", "trotter")
]


@dataclass
class Ours:
    """A chunk of batches, stepped through by `piefs.objective.descend`."""

    d: int
    batch: int
    metric: str
    n_steps: int

    def __post_init__(self) -> None:
        key, rng = jax.random.key(0), np.random.default_rng(0)
        self.params = Trainable(
            init_map(key, self.d, dtype=np.float32),
            init_metric(self.metric, key, self.d, dtype=np.float32),
            init_readout(N_CLASSES, N_COMPONENTS, dtype=np.float32),
        )
        self.opt_state = Optimizer().init(self.params)
        n, ones = (self.n_steps, self.batch), np.ones((self.n_steps, self.batch), np.float32)
        frozen = rng.standard_normal((*n, N_COMPONENTS), dtype=np.float32)
        frozen[..., N_FROZEN:] = 0
        chunk = Batch(
            rng.standard_normal((*n, self.d), dtype=np.float32),
            frozen,
            rng.integers(0, N_CLASSES, n).astype(np.int32),
            ones,
            ones,
        )
        self.chunk = jax.device_put(chunk)
        self.objective = Objective(Dampened())

    def __call__(self) -> None:
        """All steps of the chunk."""
        self.params, self.opt_state, sums = descend(
            self.params,
            self.opt_state,
            self.chunk,
            k=N_FROZEN,
            first_step=0,
            n_steps=self.n_steps,
            total_steps=3750,
            learning_rate=1e-3,
            objective=self.objective,
            optimizer=Optimizer(),
        )
        jax.block_until_ready(sums)


@dataclass
class Reference:
    """The same steps by the PyTorch reference."""

    d: int
    batch: int
    metric: str
    n_steps: int

    def __post_init__(self) -> None:
        torch.set_num_threads(cores())
        self.trainer = Trainer(self.d, self.metric, N_FROZEN, N_CLASSES)
        self.x = torch.randn(self.batch, self.d)
        self.y = torch.randint(0, N_CLASSES, (self.batch,))

    def __call__(self) -> None:
        """All steps."""
        for _ in range(self.n_steps):
            self.trainer.step(self.x, self.y)


def steps_per_second(d: int, batch: int, metric: str) -> dict[str, float]:
    """Both, in turns; each call is long enough to time."""
    flops = step_flops(d, batch, metric, merged=False)
    ours = Ours(d, batch, metric, n_steps=int(np.clip(4e10 / flops, 4, 250)))
    reference = Reference(d, batch, metric, n_steps=int(np.clip(6e9 / flops, 2, 30)))
    medians = interleaved({"ours": ours, "reference": reference}, repeats=7)
    return {
        "ours": ours.n_steps / medians["ours"],
        "reference": reference.n_steps / medians["reference"],
    }


def run() -> dict[str, object]:
    """Every shape, with its ratio and its share of the multiply rate."""
    rates = multiply_rates(
        {
            "inputs to hidden, batch 2048": (2048, 784, 64),
            "hidden to inputs, batch 2048": (2048, 64, 784),
            "hidden to hidden, batch 2048": (2048, 64, 64),
            "hidden to hidden, batch 256": (256, 64, 64),
            "large square": (2048, 2048, 2048),
        }
    )
    fastest = max(rates["all_cores"].values())
    rows = []
    for d, batch, metric in SHAPES:
        found = steps_per_second(d, batch, metric)
        plain = step_flops(d, batch, metric, merged=False)
        merged = step_flops(d, batch, metric, merged=True)
        rows.append(
            {
                "d": d,
                "batch": batch,
                "metric": metric,
                **{f"{name}_steps_per_second": round(rate, 1) for name, rate in found.items()},
                "ratio": round(found["ours"] / found["reference"], 2),
                "gflop_per_step": round(plain / 1e9, 4),
                "gflop_per_step_merged": round(merged / 1e9, 4),
                "share_of_multiply_rate": round(found["ours"] * plain / 1e9 / fastest, 3),
                "share_merged": round(found["ours"] * merged / 1e9 / fastest, 3),
            }
        )
        print(f"  d={d} batch={batch} {metric}: {rows[-1]}", flush=True)
    return {"multiply_rate_gflops": rates, "n_frozen": N_FROZEN, "rows": rows}
