"""Processes that share a batch: what messages take, and how well `piefs.costs` foretells a step.

Processes are pinned to cores in turn, each computing with one thread, and talk over loopback. Two
cores do the work of four processes in twice the time that four cores would take; the prediction
allows for that.
"""

import json
import os
import socket
import subprocess
import sys
from typing import Any

from benchmarks.machine import cores
from piefs.costs import HARDWARE, SMALL_MESSAGES, Plan, Work

SHAPES = ((32, 4096), (256, 1024), (256, 8192))  # features, rows of a batch
K, N_CLASSES = 8, 10
PROCESSES = (1, 2, 4)
MESSAGE_BYTES = (4, 2**16, 2**20, 2**22)

PROGRAM = """
import json, os, sys, time
address, n, i = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shapes, sizes = json.loads(sys.argv[4]), json.loads(sys.argv[5])
allowed = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {allowed[i % len(allowed)]})
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from piefs import processes
from piefs.batches import Samples
from piefs.config import TrainConfig
from piefs.devices import ROWS, devices_of
from piefs.train import train
if n > 1:
    processes.join(address, n, i)
devices = devices_of("all")
found = {"messages": {}, "steps": []}
if n > 1:
    # As in training: many sums in one program, each of which waits for the one before.
    repeats = 200
    for size in sizes:
        entries = max(1, size // 4)
        def many(x):
            body = lambda _, c: jax.lax.psum(x[0] + 1e-6 * jax.lax.pcast(c, ROWS, to="varying"), ROWS)
            first = jax.lax.psum(x[0], ROWS)
            return jax.lax.fori_loop(0, repeats if size < 2**20 else 20, body, first)
        run = jax.jit(jax.shard_map(many, mesh=devices.mesh, in_specs=PartitionSpec(ROWS), out_specs=PartitionSpec()))
        spread = NamedSharding(devices.mesh, PartitionSpec(ROWS))
        x = jax.make_array_from_process_local_data(spread, np.ones((1, entries), np.float32))
        run(x).block_until_ready()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run(x).block_until_ready()
            times.append((time.perf_counter() - start) / (repeats if size < 2**20 else 20))
        found["messages"][str(size)] = sorted(times)[2]
for d, batch in shapes:
    rng = np.random.default_rng(0)
    rows = 4 * batch
    x, y = rng.standard_normal((rows, d), dtype=np.float32), rng.integers(0, 10, rows).astype(np.int32)
    samples = Samples(x, y, devices=devices)
    times = []
    class Stop:
        def __call__(self, state):
            times.append((state.step, time.perf_counter()))
    config = TrainConfig(n_components=8, schedule="nested", steps_per_component=120, batch_size=batch, log_every=20)
    train(samples, config, n_outputs=10, callbacks=[Stop()])
    (s0, t0), (s1, t1) = times[1], [t for t in times if t[0]][-1]
    found["steps"].append({"d": d, "batch": batch, "seconds": (t1 - t0) / (s1 - s0)})
if i == 0:
    print(json.dumps(found))
processes.leave()
"""


def measured(n_processes: int) -> dict[str, Any]:
    """Messages and steps of so many processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = os.environ | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    arguments = [json.dumps(SHAPES), json.dumps(MESSAGE_BYTES)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address, str(n_processes), str(i), *arguments],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for i in range(n_processes)
    ]
    said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"a process of {n_processes} has failed")
    return json.loads(said[0].strip().splitlines()[-1])


def foretold(alone: float, d: int, batch: int, n_processes: int, messages: dict) -> float:
    """A step's time by the plan: arithmetic shared by the cores, messages as they were measured."""
    work = Work(batch, d, K, N_CLASSES, batch_size=batch)
    plan = Plan(work, HARDWARE["cpu"], n_processes)
    computing = alone / min(n_processes, cores())
    return computing + SMALL_MESSAGES * messages["4"] + message(plan.gradient_bytes, messages)


def message(n_bytes: float, messages: dict[str, float]) -> float:
    """The time of a message between measured sizes, on a straight line."""
    sizes = sorted(map(int, messages))
    for small, large in zip(sizes, sizes[1:], strict=False):
        if n_bytes <= large or large == sizes[-1]:
            slope = (messages[str(large)] - messages[str(small)]) / (large - small)
            return messages[str(small)] + slope * (n_bytes - small)
    raise ValueError(n_bytes)


def run() -> dict[str, Any]:
    """All numbers of processes; predictions from one process and the messages' times alone."""
    found = {n: measured(n) for n in PROCESSES}
    rows = []
    for n in PROCESSES[1:]:
        pairs = zip(found[1]["steps"], found[n]["steps"], strict=True)
        for alone, together in pairs:
            predicted = foretold(
                alone["seconds"], alone["d"], alone["batch"], n, found[n]["messages"]
            )
            rows.append(
                {
                    "processes": n,
                    "d": alone["d"],
                    "batch": alone["batch"],
                    "alone_ms": round(1e3 * alone["seconds"], 2),
                    "together_ms": round(1e3 * together["seconds"], 2),
                    "foretold_ms": round(1e3 * predicted, 2),
                }
            )
            print(f"  {rows[-1]}", flush=True)
    messages = {
        n: {size: round(1e6 * seconds, 1) for size, seconds in found[n]["messages"].items()}
        for n in PROCESSES[1:]
    }
    return {"K": K, "cores": cores(), "message_microseconds": messages, "rows": rows}
