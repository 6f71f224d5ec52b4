"""Runs of several processes, on one machine or on many, with `jax.distributed`.

All processes are started with the same command. They connect to the first one (number 0), which
alone writes files and prints. If one of them ends early, the others notice at once or after
`HEARTBEAT_SECONDS`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from piefs.errors import InputError
from piefs.training.sharding import Devices, devices_of

DETECTED = "auto"
HEARTBEAT_SECONDS = 15
START_SECONDS = 120
LINGER_SECONDS = 2


def join(coordinator: str, n_processes: int | None, process: int | None) -> None:
    """Connect to the other processes, by the address of the first one or by the cluster's.

    With the coordinator "auto", JAX asks the cluster's scheduler (Slurm, Kubernetes, Open MPI and
    others that it knows) for address and numbers.
    """
    import jax

    given = _checked(coordinator, n_processes, process)
    try:
        jax.distributed.initialize(
            **given,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            initialization_timeout=START_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        raise InputError(_reason(coordinator, error)) from error
    with _silent_stdout():  # the library between CPUs prints a line for each connection
        devices_of("all").any(False)


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Keep standard output clean, even of compiled libraries: it may be JSON."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _checked(coordinator: str, n_processes: int | None, process: int | None) -> dict[str, Any]:
    if coordinator == DETECTED:
        return {}
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdigit():
        raise InputError(
            f"--coordinator {coordinator!r} is not an address: give HOST:PORT of the first "
            f"process, or {DETECTED!r} on a cluster whose scheduler JAX knows"
        )
    if n_processes is None or process is None:
        raise InputError("--coordinator HOST:PORT needs --num-processes and --process-id")
    if not 0 <= process < n_processes:
        raise InputError(
            f"--process-id {process} is not one of 0 … {n_processes - 1} (--num-processes "
            f"{n_processes})"
        )
    return {
        "coordinator_address": coordinator,
        "num_processes": n_processes,
        "process_id": process,
    }


def _reason(coordinator: str, error: Exception) -> str:
    said = " ".join(str(error).split())[:300]
    if coordinator == DETECTED:
        return (
            f"JAX does not recognise a cluster here ({said}); give --coordinator HOST:PORT, "
            "--num-processes and --process-id"
        )
    return (
        f"the processes did not connect at {coordinator} within {START_SECONDS} s ({said}); check "
        "that all were started, each with its own number, and that the address can be reached"
    )


def leave() -> None:
    """Disconnect from the other processes, all at the same time; each may go on alone."""
    import jax

    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def is_first() -> bool:
    """Whether this process writes files and prints: it is alone, or the first one."""
    import jax

    return jax.process_index() == 0


@contextmanager
def entered_by_first(context: AbstractContextManager, devices: Devices) -> Iterator[None]:
    """Enter a context in the first process only; if that fails, all processes raise."""
    if devices.n_processes == 1:
        with context:
            yield
        return
    with ExitStack() as stack:
        failure = None
        if devices.process == 0:
            try:
                stack.enter_context(context)
            except Exception as error:
                failure = error
        if devices.any(failure is not None):
            raise failure or InputError("the first process failed to start: see its message")
        yield


def end(code: int) -> None:
    """Exit at once if there are other processes: disconnecting after an error would wait for them.

    Only the first one waits a moment: without it JAX aborts the others before they print why.
    """
    jax: Any = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        if is_first():
            time.sleep(LINGER_SECONDS)
        os._exit(code)
