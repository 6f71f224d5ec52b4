"""How far runs of the same seed come apart: again, on one thread, on two devices, without AVX.

`python -m lab.experiments.determinism` fits digits in processes of their own and prints, as JSON
and for each way to run, the largest difference of a coordinate on rows not trained on (coordinates
have variance one) and the share of predictions that agree with the first run's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

WAYS: dict[str, tuple[str, int | None]] = {
    "first": ("", None),
    "again": ("", None),
    "one thread": ("--xla_cpu_multi_thread_eigen=false", None),
    "two devices": ("--xla_force_host_platform_device_count=2", 2),
    "a processor without AVX": ("--xla_cpu_max_isa=SSE4_2", None),
}
RUNS: dict[str, dict[str, Any]] = {
    "single precision, 20 steps": {"steps_per_component": 20},
    "single precision, 500 steps": {"steps_per_component": 500},
    "double precision, 500 steps": {"steps_per_component": 500, "optimizer": {"dtype": "float64"}},
}


def learn(out: Path, devices: int | None) -> None:
    """Fit every run, and leave coordinates and predictions of the rows held out."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from piefs import PIEFSClassifier, sharded

    X, y = load_digits(return_X_y=True)
    X, new, y, _ = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    found = {}
    for name, keywords in RUNS.items():
        model = PIEFSClassifier(n_components=8, early_stopping=False, random_state=0, **keywords)
        with sharded(devices):
            model.fit(X, y)
        found |= {f"{name}/phi": model.transform(new), f"{name}/said": model.predict(new)}
    np.savez(out, **found)


def main() -> None:
    """Run all ways, one after the other, and tell how they compare."""
    told: dict[str, dict[str, Any]] = {name: {} for name in RUNS}
    with tempfile.TemporaryDirectory() as folder:
        outs = {way: Path(folder) / f"{i}.npz" for i, way in enumerate(WAYS)}
        for way, (flags, devices) in WAYS.items():
            command = [sys.executable, "-W", "ignore", __file__, str(outs[way]), str(devices or 0)]
            subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, check=True)
        first = np.load(outs["first"])
        for way in list(WAYS)[1:]:
            other = np.load(outs[way])
            for name in RUNS:
                phi, said = (other[f"{name}/{what}"] for what in ("phi", "said"))
                told[name][way] = {
                    "coordinates": float(np.abs(phi - first[f"{name}/phi"]).max()),
                    "agreement": float(np.mean(said == first[f"{name}/said"])),
                }
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        learn(Path(sys.argv[1]), int(sys.argv[2]) or None)
    else:
        main()
