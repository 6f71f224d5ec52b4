"""`python -m lab.tables`: fit what is missing, one process per table and method."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from lab.benchmarks.machine import BUSY, busy_share
from lab.tables.data import SPLITS, TABLES, read
from lab.tables.methods import CORES, METHODS
from lab.tables.records import RECORDS, missing
from reproduction.study import Study

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for; everything by default."""
    parser = argparse.ArgumentParser(prog="lab.tables", description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, metavar="TABLE")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--most-rows", type=int, help="leave out tables with more rows")
    parser.add_argument("--idle", action="store_true", help="nothing else runs: seconds count")
    parser.add_argument("--records", type=Path, default=RECORDS, help="without the suffix")
    return parser.parse_args(arguments)


def fit_missing(found: argparse.Namespace) -> int:
    """Run what has no record yet, small tables first; how many processes failed."""
    study, failed = Study(found.records), 0
    environment = os.environ | dict.fromkeys(THREADS, str(CORES))
    rows = {name: len(read(name).y) for name in found.tables}
    for table in sorted(rows, key=rows.__getitem__):
        if found.most_rows and rows[table] > found.most_rows:
            continue
        for method in found.methods:
            splits = missing(study, table, method, found.splits, idle=found.idle)
            if not splits:
                continue
            start, idle = time.perf_counter(), "idle" if found.idle else "busy"
            arguments = [found.records, table, method, idle, *splits]
            command = [sys.executable, "-m", "lab.tables.worker", *map(str, arguments)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            failed += done.returncode != 0
            state = f"{time.perf_counter() - start:.0f} s"
            if done.returncode:
                state = f"failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}"
            print(f"{table} {method} {splits}: {state}", flush=True)
    return failed


def main() -> None:
    """Run, and say if times will suffer."""
    found = options()
    if found.idle and (share := busy_share()) > BUSY:
        print(f"The machine is not idle ({share:.0%} of its cores' time is taken): seconds suffer.")
    sys.exit(fit_missing(found) > 0)


if __name__ == "__main__":
    main()
