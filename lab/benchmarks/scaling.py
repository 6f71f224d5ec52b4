"""How time and memory grow with rows, features, maps, batch and width."""

import json

from lab.benchmarks.machine import fresh_python

BASE = {"n": 20_000, "d": 32, "K": 4, "batch": 512, "width": 64}
GRID = {
    "n": (2_000, 8_000, 32_000, 128_000, 512_000),
    "d": (2, 16, 128, 1024, 4096),
    "K": (1, 4, 16, 64),
    "batch": (64, 256, 1024, 4096),
    "width": (16, 64, 256, 512),
}
EXPECTED = {"n": 0, "d": 1, "K": 1, "batch": 1, "width": 2}
STEPS = 200
PROGRAM = """
import json, resource, time
import numpy as np
from piefs.training.batches import Samples
from dataclasses import replace
from piefs.training.config import PAPER
from piefs.training.loop import train
n, d, K, batch, width = {n}, {d}, {K}, {batch}, {width}
rng = np.random.default_rng(0)
x, y = rng.standard_normal((n, d), dtype=np.float32), rng.integers(0, 3, n).astype(np.int32)
samples = Samples(x, y)
config = replace(
    PAPER, n_components=K, steps_per_component={steps}, batch_size=batch, hidden=(width,) * 3
)
train(samples, config, n_outputs=3)
start = time.perf_counter()
train(samples, config, n_outputs=3)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
data = round(samples.x.nbytes / 2**20, 1)
print(json.dumps(dict(seconds=round(seconds, 3), peak_mb=round(peak), data_mb=data)))
"""


def one_fit(settings: dict[str, int]) -> dict[str, float]:
    """A second fit of the same shape, in a process of its own."""
    code = PROGRAM.format(**settings, steps=STEPS)
    return json.loads(fresh_python(code))


def run() -> dict[str, object]:
    """One quantity at a time, the others at their base."""
    rows = []
    for name, values in GRID.items():
        for value in values:
            rows.append({"varied": name, "value": value, **one_fit(BASE | {name: value})})
            print(f"  {rows[-1]}", flush=True)
    return {"base": BASE, "steps_per_map": STEPS, "expected_slopes": EXPECTED, "rows": rows}
