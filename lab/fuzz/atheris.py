"""`python -m lab.fuzz.atheris TARGET [libFuzzer options]`: a search led by coverage, without end.

It needs `pip install atheris`. What is spoiled is the first file of the target's folder.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Search until something untyped comes out, or until it is stopped."""
    try:
        import atheris
    except ImportError:
        sys.exit("this needs atheris; pip install atheris")
    with atheris.instrument_imports(include=["piefs"]):
        from lab.fuzz.cases import judged
        from lab.fuzz.seeds import make_seeds
        from lab.fuzz.targets import TARGETS
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    seeds = Path(tempfile.mkdtemp(prefix="piefs-seeds-"))
    make_seeds(seeds)
    corpus = Path(tempfile.mkdtemp(prefix="piefs-corpus-"))
    folder = seeds / name
    attacked = next(path for path in sorted(folder.rglob("*")) if path.is_file())
    shutil.copy(attacked, corpus)

    def one(content: bytes) -> None:
        attacked.write_bytes(content)
        verdict, said = judged(name, folder)
        if verdict == "crashed":
            raise AssertionError(said)

    atheris.Setup([*sys.argv, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
