"""Gradient steps a second: ours, the PyTorch reference, and what the matrix products allow."""

from dataclasses import dataclass

import numpy as np
import torch

from lab.benchmarks.descent import N_CLASSES, N_FROZEN, Descent
from lab.benchmarks.machine import cores, interleaved, multiply_rates
from lab.benchmarks.reference import Trainer
from lab.costs import step_flops

SHAPES = [
    (d, batch, metric)
    for d in (2, 8, 512, 784)
    for batch in (256, 2048)
    for metric in ("off", "diag", "trotter")
]


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
    ours = Descent(d, batch, metric, n_steps=int(np.clip(4e10 / flops, 4, 250)))
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
