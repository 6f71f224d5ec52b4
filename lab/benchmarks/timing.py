"""Timing that can be trusted: warmed up, interleaved, repeated, the median taken."""

import time
from collections.abc import Callable, Mapping
from statistics import median

Work = Callable[[], object]


def seconds(work: Work) -> float:
    """The wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(candidates: Mapping[str, Work], repeats: int = 5) -> dict[str, float]:
    """The median seconds of each candidate, measured in turns so that all see the same machine."""
    for work in candidates.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, work in candidates.items():
            times[name].append(seconds(work))
    return {name: median(values) for name, values in times.items()}
