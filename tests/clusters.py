"""A Dask cluster of separate processes on this machine, as a user would start one."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

SCHEDULER = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"]
WORKER = ["worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard"]


@contextmanager
def running(arguments, folder, name, **environment):
    """A process `dask arguments…`; it is killed, as a polite end takes seconds."""
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments, "--scheduler-file", "scheduler.json"],
            stdout=log,
            stderr=log,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def dask_worker(folder, name, **environment):
    """One more worker for the scheduler of a folder."""
    arguments = [*WORKER, "--name", name, "--local-directory", str(folder)]
    with running(arguments, folder, name, **environment) as process:
        yield process


@contextmanager
def dask_cluster(folder, n_workers):
    """The address of a scheduler with so many workers, which may still be starting."""
    with ExitStack() as stack:
        stack.enter_context(running(SCHEDULER, folder, "scheduler"))
        for i in range(n_workers):
            stack.enter_context(dask_worker(folder, f"worker{i}"))
        yield address_in(folder / "scheduler.json")


def address_in(contact):
    """The address that a scheduler leaves in a file."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return json.loads(contact.read_text())["address"]
        except (OSError, ValueError):  # not there yet, or not whole
            time.sleep(0.05)
    raise TimeoutError("no scheduler has started")
