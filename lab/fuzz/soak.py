"""`python -m lab.fuzz.soak`: runs killed at random moments, resumed, compared to the last byte."""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from multiprocessing.context import ForkServerProcess as Process
from pathlib import Path

from lab.fuzz import RESULTS
from lab.fuzz.victim import whole_run
from piefs.data.files import LOCK, library_versions

POLL_SECONDS = 0.02
LONG = 600.0
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["lab.fuzz.victim"])


@dataclass
class Counts:
    """How often a run was killed, and what became of it."""

    kills: int = 0
    kills_before_the_first_step: int = 0
    runs_finished: int = 0
    identical: int = 0
    failed_to_resume: int = 0


def start(folder: Path) -> Process:
    """A run in a process of its own, which does not have to import everything again."""
    process = PROCESSES.Process(target=whole_run, args=(folder,))
    process.start()
    return process


def weights(folder: Path) -> bytes:
    """What a finished run has learned."""
    return (folder / "model" / "weights.safetensors").read_bytes()


def finish(folder: Path) -> tuple[bytes, float]:
    """The weights of a run that nobody disturbs, and the seconds it held its folder."""
    process = start(folder)
    _wait_for(folder / LOCK, process)
    begun = time.monotonic()
    process.join(LONG)
    if process.exitcode:
        raise RuntimeError(f"a run that nobody disturbed ended with {process.exitcode}")
    return weights(folder), time.monotonic() - begun


def _wait_for(path: Path, process: Process) -> None:
    """Until a run has opened its folder: before that there is nothing to lose."""
    while not path.exists() and process.is_alive():
        time.sleep(POLL_SECONDS)


def kill_once(folder: Path, seconds: float, counts: Counts) -> bool:
    """Start or resume a run and kill it after so many seconds; whether it was still running."""
    process = start(folder)
    _wait_for(folder / LOCK, process)
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        counts.kills += 1
        counts.kills_before_the_first_step += not any(folder.glob("checkpoint*"))
        return True
    counts.failed_to_resume += process.exitcode != 0
    return False


def soak(
    folder: Path,
    expected: bytes,
    seconds: float,
    n_kills: int,
    seed: int = 0,
    spread: float = 1.2,
) -> Counts:
    """Kill and resume until there were so many kills; the last run is finished too.

    The moments are spread over so many times a run's length: past its end, so that some runs end.
    """
    moments, counts, n_runs = random.Random(seed), Counts(), 0
    while counts.kills < n_kills:
        current = folder / str(n_runs)
        is_new, begun = not current.exists(), time.monotonic()
        was_killed = kill_once(current, moments.uniform(0, spread) * seconds, counts)
        if is_new and not was_killed:  # the machine has become faster: kill earlier
            seconds = time.monotonic() - begun
        if not was_killed or _is_finished(current):  # a kill may come just after the end
            _compare(current, expected, counts)
            n_runs += 1
    kill_once(folder / str(n_runs), LONG, counts)
    _compare(folder / str(n_runs), expected, counts)
    return counts


def _is_finished(folder: Path) -> bool:
    return (folder / "metrics.json").exists()


def _compare(folder: Path, expected: bytes, counts: Counts) -> None:
    if _is_finished(folder):
        counts.runs_finished += 1
        counts.identical += weights(folder) == expected


def main() -> int:
    """Kill runs, and write down how it went."""
    parser = argparse.ArgumentParser(prog="lab.fuzz.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="piefs-soak-") as name:
        finish(Path(name) / "first")  # it compiles, which takes time of its own
        expected, seconds = finish(Path(name) / "whole")
        counts = soak(Path(name) / "killed", expected, seconds, arguments.kills, arguments.seed)
    result = {
        **asdict(counts),
        "seconds_of_a_run": round(seconds, 1),
        "seconds": round(time.monotonic() - begun),
        "seed": arguments.seed,
        "python": platform.python_version(),
        "versions": library_versions(),
    }
    RESULTS.add("soak", result)
    print(result)
    return counts.failed_to_resume + counts.runs_finished - counts.identical


if __name__ == "__main__":
    sys.exit(min(main(), 1))
