"""`python -m lab.mutants [MODULE …] [--sample N]`: change, test, and write down what was noticed."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from typing import Any

from lab.mutants.score import FOLDER, SURVIVED
from lab.mutants.trial import ROOT, SOURCES, import_libraries, source_of, tried

RESULTS = FOLDER / "results"
BUILT_ON = ("test_objective.py", "test_state.py", "test_golden.py")
TESTS = {
    "maps": ("test_maps.py", *BUILT_ON),
    "metrics": ("test_metrics.py", "test_metrics_wellposed.py", *BUILT_ON),
    "rotations": ("test_rotations.py", "test_rotations_families.py", *BUILT_ON),
    "losses": ("test_losses.py", *BUILT_ON),
    "weighting": ("test_weighting.py", *BUILT_ON),
    "train": ("test_train.py", *BUILT_ON),
}
"""The tests that mirror a module, then those of what is built on it; the first failure ends."""


def files_of(module: str) -> list[str]:
    """The module, or the modules of the package, by their full names."""
    path = SOURCES / "piefs" / module
    if not path.is_dir():
        return [f"piefs.{module}"]
    inner = sorted(file.stem for file in path.glob("*.py"))
    return [f"piefs.{module}" + f".{name}" * (name != "__init__") for name in inner]


def main() -> None:
    """Try what is asked for; a trial that is on record for the same source is not repeated."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(TESTS)}")
    parser.add_argument("--sample", type=int, default=100, help="changes of a module, at most")
    parser.add_argument("--anew", action="store_true", help="try again what survived before")
    asked = parser.parse_args()
    if unknown := set(asked.modules) - set(TESTS):
        parser.error(f"no module {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    import_libraries()
    for module in asked.modules or TESTS:
        try_module(module, asked.sample, asked.anew)


def try_module(module: str, sample: int, anew: bool) -> None:
    """Try a sample of a module's changes, and write down each verdict as it comes."""
    from lab.mutants.changes import changes_of

    changes = [
        (name, change)
        for name in files_of(module)
        for change in changes_of(source_of(name).read_text(encoding="utf-8"))
    ]
    chosen = random.Random(0).sample(changes, min(sample, len(changes)))
    trials = _known(module, anew)
    _check_unchanged(module)
    for i, (name, change) in enumerate(chosen):
        key = f"{name} {change.difference}"
        if key not in trials:
            trials[key] = _trial(name, change.source, TESTS[module])
            _say(f"{module} {i + 1}/{len(chosen)}: {trials[key]['verdict']}, {key!r}")
            _write(module, len(changes), trials)
    _write(module, len(changes), {key: trials[key] for key in _keys(chosen)})


def _check_unchanged(module: str) -> None:
    """End here where the tests fail on the source as it is: they would notice anything."""
    name = files_of(module)[0]
    trial = _trial(name, source_of(name).read_text(encoding="utf-8"), TESTS[module])
    if trial["verdict"] != SURVIVED:
        sys.exit(f"the tests of {module} fail without any change: {trial}")


def _keys(chosen: list[Any]) -> list[str]:
    return [f"{name} {change.difference}" for name, change in chosen]


def _trial(name: str, source: str, tests: Sequence[str]) -> dict[str, Any]:
    verdict, seconds, words = tried(name, source, [str(ROOT / "tests" / test) for test in tests])
    failed = [line for line in words.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[-1].split(" - ")[0].split("tests/")[-1] if failed else ""
    return {"verdict": verdict, "by": by, "seconds": round(seconds, 1)}


def _known(module: str, anew: bool) -> dict[str, dict[str, Any]]:
    path = RESULTS / f"{module}.json"
    if not path.exists():
        return {}
    trials = json.loads(path.read_text(encoding="utf-8"))["trials"]
    return {key: one for key, one in trials.items() if not (anew and one["verdict"] == SURVIVED)}


def _write(module: str, n_changes: int, trials: dict[str, dict[str, Any]]) -> None:
    about = {"date": str(date.today()), "mutmut": version("mutmut"), "jax": version("jax")}
    document = {"module": module, **about, "changes": n_changes, "trials": trials}
    RESULTS.mkdir(exist_ok=True)
    unfinished = RESULTS / f"{module}.json.new"
    unfinished.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(RESULTS / f"{module}.json")


def _say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
