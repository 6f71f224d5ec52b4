"""Many models at once: one process a core, as grids of seeds are run."""

import json
import os
import subprocess
import sys

from lab.benchmarks.machine import cores, seconds
from lab.benchmarks.steps import Reference

N_MODELS, D, BATCH, METRIC = 5, 2, 256, "off"
CALLS, CALL_STEPS = 20, 250
PROGRAM = f"""
import os, sys, time
os.sched_setaffinity(0, {{int(sys.argv[1])}})
from lab.benchmarks.descent import Descent
models = [Descent({D}, {BATCH}, {METRIC!r}, {CALL_STEPS}) for _ in range(int(sys.argv[2]))]
for model in models:
    model()
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
for model in models:
    for _ in range({CALLS}):
        model()
print(time.perf_counter() - start)
"""


def run() -> dict[str, object]:
    """Steps a second of five models together, and of the reference, one model on all cores."""
    available = sorted(os.sched_getaffinity(0))
    shares = [len(range(i, N_MODELS, cores())) for i in range(cores())]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(core), str(share)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for core, share in zip(available, shares, strict=True)
    ]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    slowest = max(float(worker.communicate()[0]) for worker in workers)
    together = N_MODELS * CALLS * CALL_STEPS / slowest
    reference = Reference(D, BATCH, METRIC, 100)
    reference()
    alone = 100 / min(seconds(reference) for _ in range(5))
    return json.loads(
        json.dumps(
            {
                "models": N_MODELS,
                "d": D,
                "batch": BATCH,
                "metric": METRIC,
                "models_per_core": shares,
                "steps_per_second_together": round(together, 1),
                "reference_steps_per_second": round(alone, 1),
                "ratio": round(together / alone, 1),
            }
        )
    )
