"""Processes that share a batch: do they learn the same, what do messages take, a step predicted.

Processes are pinned to cores in turn, each computing with one thread, and talk over loopback. Two
cores do the work of four processes in twice the time that four cores would take; the prediction
allows for that.
"""

import json
import os
import socket
import subprocess
import sys
from itertools import pairwise
from typing import Any

from lab.benchmarks.distributed_member import N_CLASSES, K
from lab.benchmarks.machine import cores
from lab.costs import HARDWARE, SMALL_MESSAGES, Plan, Work

PROCESSES = (1, 2, 4)


def measured(n_processes: int) -> dict[str, Any]:
    """Messages and steps of so many processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = os.environ | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "lab.benchmarks.distributed_member",
                address,
                str(n_processes),
                str(i),
            ],
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


def predicted(alone: float, d: int, batch: int, n_processes: int, messages: dict) -> float:
    """A step's time by the plan: arithmetic shared by the cores, messages as they were measured."""
    work = Work(batch, d, K, N_CLASSES, batch_size=batch)
    plan = Plan(work, HARDWARE["cpu"], n_processes)
    computing = alone / min(n_processes, cores())
    return computing + SMALL_MESSAGES * messages["4"] + message(plan.gradient_bytes, messages)


def message(n_bytes: float, messages: dict[str, float]) -> float:
    """The time of a message between measured sizes, on a straight line."""
    sizes = sorted(map(int, messages))
    for small, large in pairwise(sizes):
        if n_bytes <= large or large == sizes[-1]:
            slope = (messages[str(large)] - messages[str(small)]) / (large - small)
            return messages[str(small)] + slope * (n_bytes - small)
    raise ValueError(n_bytes)


def differences(alone: dict[str, list[float]], other: dict[str, list[float]]) -> dict[str, float]:
    """The largest difference of any number of a model, by how it was trained."""
    return {
        name: max(abs(a - b) for a, b in zip(alone[name], other[name], strict=True))
        for name in alone
    }


def run() -> dict[str, Any]:
    """All numbers of processes; predictions from one process and the messages' times alone."""
    found = {n: measured(n) for n in PROCESSES}
    rows = []
    for n in PROCESSES[1:]:
        pairs = zip(found[1]["steps"], found[n]["steps"], strict=True)
        for alone, together in pairs:
            expected = predicted(
                alone["seconds"], alone["d"], alone["batch"], n, found[n]["messages"]
            )
            rows.append(
                {
                    "processes": n,
                    "d": alone["d"],
                    "batch": alone["batch"],
                    "alone_ms": round(1e3 * alone["seconds"], 2),
                    "together_ms": round(1e3 * together["seconds"], 2),
                    "foretold_ms": round(1e3 * expected, 2),
                }
            )
            print(f"  {rows[-1]}", flush=True)
    messages = {
        n: {size: round(1e6 * seconds, 1) for size, seconds in found[n]["messages"].items()}
        for n in PROCESSES[1:]
    }
    apart = {n: differences(found[1]["learned"], found[n]["learned"]) for n in PROCESSES[1:]}
    print(f"  {apart}", flush=True)
    return {
        "K": K,
        "cores": cores(),
        "apart": apart,
        "small_messages": SMALL_MESSAGES,
        "message_microseconds": messages,
        "rows": rows,
    }
