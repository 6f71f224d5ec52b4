"""The price of a rotation: a training step with each family, relative to `trotter`, in one run.

`python -m lab.benchmarks rotations`. Steps of one map at d = 784, with U(x) from a network (local)
and with one U for all points (global).
"""

import gc
from typing import Any

import jax

from lab.benchmarks.descent import Descent
from lab.benchmarks.machine import interleaved

N_FEATURES, BATCH, N_STEPS = 784, 256, 6

VARIANTS: dict[str, dict[str, Any]] = {
    "trotter": {"metric": "trotter"},
    "cayley": {"metric": "cayley"},
    "butterfly": {"metric": "butterfly"},
    "off": {"metric": "off"},
    "butterfly, global": {"metric": "butterfly", "scope": "global"},
    "agop": {"metric": "agop"},
    "diag": {"metric": "diag"},
}


def steps(options: dict[str, Any]) -> Descent:
    """The first map's steps with a metric."""
    rest = {name: value for name, value in options.items() if name != "metric"}
    return Descent(N_FEATURES, BATCH, options["metric"], N_STEPS, 0, rest)


def run() -> dict[str, object]:
    """Milliseconds a step, and the ratio to `trotter`, whose turn comes before every other's."""
    rows = []
    trotter = steps(VARIANTS["trotter"])
    for name, options in VARIANTS.items():
        other = steps(options)
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
