"""`python -m lab.benchmarks [NAME …]`: measure, and keep one record a benchmark."""

import argparse
import importlib
import time

from lab.benchmarks.machine import BUSY, description
from lab.benchmarks.results import RESULTS

NAMES = (
    "steps",
    "seeds",
    "inference",
    "startup",
    "fits",
    "scaling",
    "mnist",
    "default",
    "operators",
    "rotations",
    "expressivity",
    "exports",
    "distributed",
    "memory",
)


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="lab.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(
            f"no benchmark called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    for name in names:
        start, machine = time.perf_counter(), description()
        if machine["busy_before"] > BUSY:
            busy = f"{machine['busy_before']:.0%}"
            print(f"The machine is not idle ({busy} of its cores' time is taken): figures suffer.")
        print(f"{name} …", flush=True)
        found = importlib.import_module(f"lab.benchmarks.{name}").run()
        document = {"benchmark": name, "machine": machine, **found}
        document["seconds"] = round(time.perf_counter() - start)
        RESULTS.add(name, document)
        print(f"{name} done in {document['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
