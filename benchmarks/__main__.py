"""`python -m benchmarks [NAME …]`: measure, and write one JSON a benchmark."""

import argparse
import importlib
import json
import os
import time
from pathlib import Path

from benchmarks.machine import description

NAMES = ("steps", "seeds", "inference", "startup", "fits", "scaling", "mnist")
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(
            f"no benchmark called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    for name in names:
        if os.getloadavg()[0] > 0.5:
            print(f"The machine is not idle (load {os.getloadavg()[0]:.1f}): figures may suffer.")
        print(f"{name} …", flush=True)
        start, machine = time.perf_counter(), description()
        found = importlib.import_module(f"benchmarks.{name}").run()
        document = {"benchmark": name, "machine": machine, **found}
        document["seconds"] = round(time.perf_counter() - start)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
        print(f"{name} done in {document['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
