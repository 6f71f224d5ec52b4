"""`python -m lab.fuzz`: spoiled files for every reader, and counts of what became of them."""

from __future__ import annotations

import argparse
import json
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lab.fuzz import RESULTS
from lab.fuzz.seeds import make_seeds
from lab.fuzz.targets import TARGETS
from lab.fuzz.worker import MOST_BYTES, SECONDS
from piefs.data.files import library_versions

EXAMPLES = 10
FILES = 10_000
"""Counts of fewer files a reader are shown, and not kept: the page is about so many."""


def attack(name: str, seeds: Path, n_files: int, seed: int) -> dict[str, Any]:
    """Counts for one reader; a worker that dies is followed by another one."""
    begun = time.monotonic()
    counts = {"files": 0, "accepted": 0, "refused": 0, "crashed": 0, "died": 0, "hung": 0}
    peak, examples, first = 0, [], 0
    while first < n_files:
        words = [name, str(seeds), str(first), str(n_files), str(seed)]
        command = [sys.executable, "-m", "lab.fuzz.worker", *words]
        with tempfile.TemporaryFile("w+") as errors:  # a pipe that nobody reads would fill up
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            assert worker.stdout is not None
            for line in worker.stdout:
                index, verdict, kilobytes, said = json.loads(line)
                first, peak = index + 1, max(peak, kilobytes)
                counts["files"] += 1
                counts[verdict] += 1
                if verdict == "crashed":
                    examples.append({"index": index, "said": said})
            worker.wait()
            errors.seek(0)
            last_words = errors.read()[-3000:]
        if first < n_files:
            if "sound files" in last_words:
                sys.exit(last_words)
            late = worker.returncode == -signal.SIGPROF or "Timeout (" in last_words
            verdict = "hung" if late else "died"
            counts["files"] += 1
            counts[verdict] += 1
            examples.append({"index": first, "said": f"{verdict}: {last_words}"})
            first += 1
    return {
        **counts,
        "peak_megabytes": round(peak / 1024, 1),
        "seconds": round(time.monotonic() - begun, 1),
        "examples": examples[:EXAMPLES],
    }


def _known(about: dict[str, Any]) -> dict[str, Any]:
    """What was counted before under the same conditions, so that readers can be done in parts."""
    if "fuzz" not in RESULTS:
        return {}
    before = RESULTS["fuzz"]
    return before["readers"] if before | about == before else {}


def main() -> int:
    """Attack readers one after the other; how many files did what no file may do."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    about = {
        "files_a_reader": arguments.files,
        "seed": arguments.seed,
        "seconds_a_file": SECONDS,
        "bytes_allowed": MOST_BYTES,
        "python": platform.python_version(),
        "versions": library_versions(),
    }
    found = about | {"readers": _known(about)}
    with tempfile.TemporaryDirectory(prefix="piefs-seeds-") as folder:
        make_seeds(Path(folder))
        for name in arguments.targets:
            result = attack(name, Path(folder), arguments.files, arguments.seed)
            found["readers"] = {
                reader: counts
                for reader in TARGETS
                if (counts := (found["readers"] | {name: result}).get(reader))
            }
            print(name, {key: value for key, value in result.items() if key != "examples"})
            for example in result["examples"]:
                print(example["index"], example["said"])
            if arguments.files >= FILES:
                RESULTS.add("fuzz", found)
    return sum(r["crashed"] + r["died"] + r["hung"] for r in found["readers"].values())


if __name__ == "__main__":
    sys.exit(min(main(), 1))
