"""The files that one `fit` and one `predict` run through, in order: `python -m lab.walk`.

A first fit imports what is needed; a second one is watched. Files whose code runs only while they
are imported do not count.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import piefs


def files_of(action: Callable[[], Any]) -> list[str]:
    """The files of the package whose functions `action` calls, in order of the first call."""
    root = str(Path(str(piefs.__file__)).parent)
    seen: dict[str, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(root) and frame.f_code.co_name != "<module>":
            seen.setdefault(name[len(root) + 1 :])

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for name in seen if name != "__init__.py"]


def walk(n_rows: int = 60) -> tuple[list[str], list[str]]:
    """The files of a small default fit of `PIEFSClassifier`, and of a prediction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    y = np.where(X[:, 0] > X[:, 1], "above", "below")
    keywords: dict[str, Any] = {"n_components": 3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        piefs.PIEFSClassifier(**keywords).fit(X[:-1, :-1], y[:-1]).predict(X[:, 1:])
        model = piefs.PIEFSClassifier(**keywords)
        return files_of(lambda: model.fit(X, y)), files_of(lambda: model.predict(X))


def main() -> None:
    """Print both lists."""
    for title, files in zip(("fit", "predict"), walk(), strict=True):
        print(f"{title}: {len(files)} files")
        print("\n".join(f"  {i:2}  {name}" for i, name in enumerate(files, 1)))


if __name__ == "__main__":
    main()
