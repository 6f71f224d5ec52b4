"""The time a command takes by the clock, phase by phase, from its very beginning."""

import time
from typing import Any


class Clock:
    """Seconds of wall-clock time since `begun`, by phase; a phase lasts until it is said to end."""

    def __init__(self, begun: float | None = None) -> None:
        self.begun = self._last = time.monotonic() if begun is None else begun
        self.phases: dict[str, float] = {}

    def end(self, phase: str) -> None:
        """All time since the last phase belongs to this one."""
        now = time.monotonic()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now

    def told(self, metrics: dict[str, Any], fitting: float | None = None) -> None:
        """Add to a run's metrics what it took; what is left to write after that takes no time.

        `fitting` counts the parts before an interruption.
        """
        if "seconds" not in metrics:
            self.end("drawing" if "measuring" in self.phases else "measuring")
            phases = self.phases | ({} if fitting is None else {"fitting": fitting})
            metrics |= {"seconds": sum(phases.values()), "phases": phases}
            metrics["steps_per_second"] = metrics["steps"] / phases["fitting"]


def in_phases(metrics: dict[str, Any]) -> str:
    """What a run took, in words: 4.7 s (reading 1.1, fitting 0.4, measuring 0.8, drawing 2.4)."""
    phases = metrics.get("phases") or {}  # which earlier runs did not tell
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases.items())
    return f"{metrics['seconds']:.1f} s" + (f" ({parts})" if parts else "")
