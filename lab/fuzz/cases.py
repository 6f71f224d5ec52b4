"""One spoiled file after the other: what a reader made of each."""

from __future__ import annotations

import random
import shutil
import tempfile
import traceback
import warnings
from pathlib import Path

from lab.fuzz.targets import DRAWN_EVERY, TARGETS, read, spoil
from piefs.errors import PiefsError


def spoiled(name: str, index: int, seed: int, seeds: Path, folder: Path) -> None:
    """The case of that number, in a folder."""
    spoil(seeds / name, folder, random.Random(f"{seed} {name} {index}"))


def outcome(name: str, index: int, seed: int, seeds: Path) -> tuple[str, str]:
    """`accepted`, `refused` by a typed error, or `crashed`, with what was said."""
    folder = Path(tempfile.mkdtemp(prefix="piefs-fuzz-"))
    try:
        spoiled(name, index, seed, seeds, folder)
        return judged(name, folder, draw=index % DRAWN_EVERY == 0)
    finally:
        shutil.rmtree(folder)


def judged(name: str, folder: Path, *, draw: bool = False) -> tuple[str, str]:
    """What the reader makes of a folder."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(TARGETS[name], folder, draw=draw)
    except PiefsError as error:
        return "refused", str(error)
    except Exception:
        return "crashed", traceback.format_exc()
    return "accepted", ""
