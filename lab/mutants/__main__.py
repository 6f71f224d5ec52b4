"""`python -m lab.mutants [MODULE …] [--sample N]`: change, test, and keep what was noticed."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from typing import Any

from lab.mutants.score import RESULTS, SURVIVED
from lab.mutants.trial import ROOT, SOURCES, import_libraries, source_of, tried

SUBJECTS = {
    "maps": "core.maps",
    "metrics": "core.metric",
    "rotations": "core.rotations",
    "losses": "core.losses",
    "weighting": "core.weighting",
    "train": "training.loop",
}
"""A module or package of piefs by the name of its trials."""
BUILT_ON = ("objective*", "state*", "golden*")


def mirroring_tests(subject: str) -> list[str]:
    """The tests that mirror a module, then those of what is built on it; the first failure ends."""
    room, module = SUBJECTS[subject].split(".")
    patterns = [f"{room}/test_{module}*.py", *(f"training/test_{name}.py" for name in BUILT_ON)]
    found = [str(path) for one in patterns for path in sorted((ROOT / "tests").glob(one))]
    return list(dict.fromkeys(found))


def files_of(subject: str) -> list[str]:
    """The module, or the modules of the package, by their full names."""
    name = f"piefs.{SUBJECTS[subject]}"
    path = SOURCES.joinpath(*name.split("."))
    if not path.is_dir():
        return [name]
    return [f"{name}.{file.stem}".removesuffix(".__init__") for file in sorted(path.glob("*.py"))]


def main() -> None:
    """Try what is asked for; a trial that is on record for the same source is not repeated."""
    parser = argparse.ArgumentParser(prog="lab.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(SUBJECTS)}")
    parser.add_argument("--sample", type=int, default=100, help="changes of a module, at most")
    parser.add_argument("--again", action="store_true", help="try again what survived before")
    asked = parser.parse_args()
    if unknown := set(asked.modules) - set(SUBJECTS):
        parser.error(f"no module {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    import_libraries()
    for module in asked.modules or SUBJECTS:
        try_module(module, asked.sample, asked.again)


def try_module(module: str, sample: int, again: bool) -> None:
    """Try a sample of a module's changes, and write down each verdict as it comes."""
    from lab.mutants.changes import changes_of

    changes = [
        (name, change)
        for name in files_of(module)
        for change in changes_of(source_of(name).read_text(encoding="utf-8"))
    ]
    chosen = random.Random(0).sample(changes, min(sample, len(changes)))
    trials = _known(module, again)
    _check_unchanged(module)
    for i, (name, change) in enumerate(chosen):
        key = f"{name} {change.difference}"
        if key not in trials:
            trials[key] = _trial(name, change.source, mirroring_tests(module))
            _say(f"{module} {i + 1}/{len(chosen)}: {trials[key]['verdict']}, {key!r}")
            _write(module, len(changes), trials)
    _write(module, len(changes), {key: trials[key] for key in _keys(chosen)})


def _check_unchanged(module: str) -> None:
    """End here where the tests fail on the source as it is: they would notice anything."""
    name = files_of(module)[0]
    trial = _trial(name, source_of(name).read_text(encoding="utf-8"), mirroring_tests(module))
    if trial["verdict"] != SURVIVED:
        sys.exit(f"the tests of {module} fail without any change: {trial}")


def _keys(chosen: list[Any]) -> list[str]:
    return [f"{name} {change.difference}" for name, change in chosen]


def _trial(name: str, source: str, tests: Sequence[str]) -> dict[str, Any]:
    verdict, seconds, words = tried(name, source, tests)
    failed = [line for line in words.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[-1].split(" - ")[0].split("tests/")[-1] if failed else ""
    return {"verdict": verdict, "by": by, "seconds": round(seconds, 1)}


def _known(module: str, again: bool) -> dict[str, dict[str, Any]]:
    trials = RESULTS[module]["trials"] if module in RESULTS else {}
    return {key: one for key, one in trials.items() if not (again and one["verdict"] == SURVIVED)}


def _write(module: str, n_changes: int, trials: dict[str, dict[str, Any]]) -> None:
    about = {"date": str(date.today()), "mutmut": version("mutmut"), "jax": version("jax")}
    RESULTS.add(module, {"module": module, **about, "changes": n_changes, "trials": trials})


def _say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
