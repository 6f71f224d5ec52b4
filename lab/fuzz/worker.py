"""A process that reads spoiled files under bounds of memory and time, and says how it went.

`python -m lab.fuzz.worker TARGET SEEDS FIRST LAST SEED`: a line of JSON a file. A file that takes
too long ends the process; whoever started it goes on behind that file.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import signal
import sys
from pathlib import Path

from lab.fuzz.cases import judged, outcome
from lab.fuzz.targets import DRAWN_EVERY

SECONDS = 5
DRAWING, WAITING = 10, 20  # pages with pictures may take so much longer, and the clock so much more
MOST_BYTES = 2 * 2**30
STATUS = Path("/proc/self/status")


def main() -> None:
    """Read the files of a range of numbers."""
    name, seeds, first, last, seed = sys.argv[1:6]
    verdict, said = judged(name, Path(seeds) / name, draw=True)  # also loads what is needed
    if verdict != "accepted":
        sys.exit(f"the sound files of {name} are not accepted: {said}")
    bound = _kilobytes("VmSize") * 1024 + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    faulthandler.register(signal.SIGPROF, chain=True)
    for index in range(int(first), int(last)):
        before = _forget_peak()
        _allow(SECONDS * (1 if index % DRAWN_EVERY else DRAWING))
        verdict, said = outcome(name, index, int(seed), Path(seeds))
        _allow(0)
        peak = _kilobytes("VmHWM") - before
        print(json.dumps([index, verdict, peak, said[-3000:]]), flush=True)


def _allow(seconds: int) -> None:
    """End this process after so much computing; 0 for no end. Others may be computing too."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.cancel_dump_traceback_later()
    if seconds:  # waiting for ever takes no computing
        faulthandler.dump_traceback_later(WAITING * seconds, exit=True)


def _forget_peak() -> int:
    """The memory held now, in kilobytes, from which the next peak counts."""
    Path("/proc/self/clear_refs").write_text("5")
    return _kilobytes("VmRSS")


def _kilobytes(field: str) -> int:
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    main()
