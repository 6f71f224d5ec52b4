"""The process that trains: what it keeps between fits, and the processes that it trains with.

A compiled program is kept on disk if asked: it takes a second or two to compile, and a fraction of
that to load. On a CPU each program takes some mappings of memory, of which Linux allows a process
65,530; fits to some 150 tables of different widths take them all (`lab/experiments/mappings`),
so programs are dropped in time.

A run may span several processes, on one machine or on many, all started with the same command
(`jax.distributed`). The first one (number 0) writes files and prints. If one of them ends early,
the others notice at once or after `HEARTBEAT_SECONDS`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piefs.data.files import optional
from piefs.errors import InputError

if TYPE_CHECKING:
    from piefs.training.sharding import Devices

FOLDER_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
OPTIONS = {  # JAX by default keeps only what took more than a second to compile
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}

MOST_TAKEN = 0.5  # of a process's mappings, when a fit begins


def keep_compiled(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in `folder`, by default the user's cache, and return that folder.

    A folder that `$JAX_COMPILATION_CACHE_DIR` names stays in force unless another one is given.
    Programs are tied to the version of JAX and the kind of machine; the folder can be deleted at
    any time.
    """
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        cache = optional("platformdirs", "keep_compiled() without a folder").user_cache_dir
        folder = Path(cache("piefs", appauthor=False)) / "compiled"
    settings = {"jax_compilation_cache_dir": str(folder), **OPTIONS}
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)  # for a JAX that is yet to be imported
        if "jax" in sys.modules:
            sys.modules["jax"].config.update(name, value)
    return Path(folder)


def drop_compiled_if_many() -> None:
    """Drop the programs of this process if they leave too few mappings of memory for more."""
    if mappings() > MOST_TAKEN * mappings_allowed():
        import jax

        jax.clear_caches()


def mappings() -> int:
    """How many mappings of memory this process has; 0 if that cannot be known."""
    with suppress(OSError):
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    return 0


def mappings_allowed() -> float:
    """How many a process may have."""
    with suppress(OSError, ValueError):
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    return float("inf")


# --- several processes -------------------------------------------------------------------------

DETECTED = "auto"
HEARTBEAT_SECONDS, START_SECONDS, LINGER_SECONDS = 15, 120, 2


def join(coordinator: str, n_processes: int | None, process: int | None) -> None:
    """Connect to the other processes, by the first one's address or, "auto", by the scheduler's.

    Slurm, Kubernetes, Open MPI and others that JAX knows tell address and numbers.
    """
    import jax

    from piefs.training.sharding import devices_of

    given = _checked(coordinator, n_processes, process)
    given |= {
        "heartbeat_timeout_seconds": HEARTBEAT_SECONDS,
        "initialization_timeout": START_SECONDS,
    }
    try:
        jax.distributed.initialize(**given)
    except (RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:300]
        reason = (
            f"JAX does not recognise a cluster here ({said}); give --coordinator HOST:PORT, "
            "--num-processes and --process-id"
            if coordinator == DETECTED
            else f"the processes did not connect at {coordinator} within {START_SECONDS} s "
            f"({said}); check that all were started, each with its own number, and that the "
            "address can be reached"
        )
        raise InputError(reason) from error
    _connect_silently(devices_of("all"))


def _connect_silently(devices: Devices) -> None:
    """The library between CPUs prints a line for each connection to what may be JSON."""
    sys.stdout.flush()
    kept = os.dup(1)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            devices.any(False)
        finally:
            os.dup2(kept, 1)
            os.close(kept)


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
    return {"coordinator_address": coordinator, "num_processes": n_processes, "process_id": process}


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
    with ExitStack() as stack:
        failure = None
        try:
            if devices.process == 0:
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
