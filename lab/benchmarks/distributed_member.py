"""A process of `distributed`: `python -m lab.benchmarks.distributed_member ADDRESS N I`."""

import json
import os
import statistics
import sys
import time
from dataclasses import replace
from functools import partial
from typing import Any

SHAPES = ((32, 4096), (256, 1024), (256, 8192))  # features, rows of a batch
MESSAGE_BYTES = (4, 2**16, 2**20, 2**22)
K, N_CLASSES, N_STEPS = 8, 10, 60
FIRST_STEP, MANY_STEPS = "one step, single precision", "500 steps, double precision"


def message_seconds(devices: Any, n_bytes: int) -> float:
    """A sum over processes as training has them: in one program, each after the one before."""
    import jax
    import numpy as np
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec

    from piefs.training.sharding import ROWS

    n_repeats = 40 if n_bytes < 2**20 else 10

    def next_sum(x: jax.Array, _: Any, total: jax.Array) -> jax.Array:
        return lax.psum(x[0] + 1e-6 * lax.pcast(total, ROWS, to="varying"), ROWS)

    def sums(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, n_repeats, partial(next_sum, x), lax.psum(x[0], ROWS))

    spread, same = PartitionSpec(ROWS), PartitionSpec()
    run = jax.jit(jax.shard_map(sums, mesh=devices.mesh, in_specs=spread, out_specs=same))
    own = np.ones((1, max(1, n_bytes // 4)), np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(devices.mesh, spread), own)
    run(x).block_until_ready()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run(x).block_until_ready()
        times.append((time.perf_counter() - start) / n_repeats)
    return statistics.median(times)


def step_seconds(devices: Any, d: int, batch: int) -> float:
    """A step of all maps at once, the first chunk, which compiles, left out."""
    import numpy as np

    from piefs.training.batches import Samples
    from piefs.training.config import Optimizer, Settings
    from piefs.training.loop import train

    rng = np.random.default_rng(0)
    x = rng.standard_normal((4 * batch, d), dtype=np.float32)
    y = rng.integers(0, N_CLASSES, len(x)).astype(np.int32)
    seen: list[tuple[int, float]] = []

    def watch(state: Any) -> None:
        if state.step:
            seen.append((state.step, time.perf_counter()))

    config = Settings(
        n_components=K,
        steps_per_component=N_STEPS,
        batch_size=batch,
        learning_rate=1e-3,
        weight_decay=0.0,
        activation="relu",
        optimizer=Optimizer("adam", 0.0, 10, 20, "auto", "float32"),
        early_stopping=False,
    )
    train(Samples(x, y, devices=devices), config, n_outputs=N_CLASSES, callbacks=[watch])
    (first, start), (last, end) = seen[0], seen[-1]
    return (end - start) / (last - first)


def learned(devices: Any) -> dict[str, list[float]]:
    """All numbers of a small model, by how it was trained: one step's are its gradient's."""
    import jax
    import numpy as np

    from piefs.core.weighting import Static
    from piefs.training.batches import Samples
    from piefs.training.config import PAPER, Metric, Settings
    from piefs.training.loop import train

    rng = np.random.default_rng(0)
    x = rng.normal(size=(603, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
    # 101 rows do not divide evenly among processes.
    small = replace(PAPER, n_components=2, metric=Metric("diag"), batch_size=101)
    configs: dict[str, Settings] = {
        FIRST_STEP: replace(
            small,
            solver="nested",
            steps_per_component=1,
            weighting=Static(orth=0.1, prefix=1.0),
            optimizer=replace(small.optimizer, name="sgd"),
        ),
        MANY_STEPS: replace(small, gram="population", steps_per_component=250),
    }
    found = {}
    for name, config in configs.items():
        is_double = name == MANY_STEPS
        with jax.enable_x64(is_double):
            rows = x.astype(np.float64 if is_double else np.float32)
            state = train(Samples(rows, y, devices=devices), config, n_outputs=2)
            leaves = jax.tree.leaves((state.maps, state.readout, state.params.metric))
            found[name] = np.concatenate([np.ravel(leaf) for leaf in leaves]).tolist()
    return found


def main() -> None:
    """Measure; the first process prints."""
    address, n, i = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[i % len(allowed)]})

    from piefs.training import runtime
    from piefs.training.sharding import devices_of

    if n > 1:
        runtime.join(address, n, i)
    devices = devices_of("all")
    sizes = MESSAGE_BYTES if n > 1 else ()
    found = {
        "messages": {str(size): message_seconds(devices, size) for size in sizes},
        "steps": [
            {"d": d, "batch": batch, "seconds": step_seconds(devices, d, batch)}
            for d, batch in SHAPES
        ],
        "learned": learned(devices),
    }
    if i == 0:
        print(json.dumps(found))
    runtime.leave()


if __name__ == "__main__":
    main()
