"""Small runs whose numbers are kept in golden.json: what was learned then is what is learned now.

Renew them with `python tests/golden.py` where a change of the method or of its random streams is
meant, and say why in LOG.md. All runs but one are in double precision: there another processor, or
another order of sums, moves the numbers by rounding alone (`python tests/golden.py spread` measures
it: programs for processors without AVX, other fusions), and a tolerance far above that is still far
below what any change of the method does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import toys
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.training.batches import Samples
from piefs.training.config import PRESETS
from piefs.training.evaluation import coordinates_of
from piefs.training.loop import train

GOLDEN = Path(__file__).with_name("golden.json")
OTHER_PROCESSORS = (
    "",
    "--xla_cpu_max_isa=SSE4_2",
    "--xla_cpu_max_isa=AVX2 --xla_backend_optimization_level=1",
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_multi_thread_eigen=false",
)
TINY: dict[str, Any] = {
    "n_components": 3,
    "steps_per_component": 20,
    "batch_size": 20,
    "hidden": (6,),
    "log_every": 10,
    "early_stopping": False,
    "random_state": 0,
    "dtype": "float64",
}
CONFIG = toys.settings(
    n_components=2,
    steps_per_component=10,
    batch_size=20,
    hidden=(6,),
    activation="tanh",
    metric_hidden=(3,),
    learning_rate=1e-2,
    log_every=5,
)
ESTIMATORS: dict[str, tuple[type, dict[str, Any]]] = {
    **{f"classifier-{preset}": (PIEFSClassifier, {"preset": preset}) for preset in PRESETS},
    "classifier-joint": (PIEFSClassifier, {"schedule": "joint"}),
    "classifier-single-precision": (PIEFSClassifier, {"dtype": "float32"}),
    "regressor-default": (PIEFSRegressor, {}),
    "transformer-paper": (PIEFSTransformer, {"preset": "paper"}),
    "transformer-spectral": (PIEFSTransformer, {}),
}
METRICS = ("off", "diag", "trotter", "cayley", "agop")
CASES = (*ESTIMATORS, *(f"metric-{metric}" for metric in METRICS))


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Numbers that no generator's version can change, and a target that takes some learning."""
    i = np.arange(60)[:, None]
    x = np.sin(1.7 * i * (1 + np.arange(4)) + 0.3 * i**1.5 + np.arange(4))
    return x, x[:, 0] * x[:, 1] + 0.5 * np.sin(3 * x[:, 2])


def measured(case: str) -> dict[str, list[float]]:
    """The numbers of a case, by name."""
    kind, _, name = case.partition("-")
    if kind == "metric":
        return _of_metric(name)
    estimator, keywords = ESTIMATORS[case]
    return _of_estimator(estimator(**toys.flat(**TINY | keywords)))


def _of_estimator(model: Any) -> dict[str, list[float]]:
    x, value = rows()
    if isinstance(model, PIEFSTransformer):
        model.fit(x)
    else:
        model.fit(x, value if isinstance(model, PIEFSRegressor) else value > 0)
    return {
        "losses": _losses(model.history_[-1]),
        "energies": model.energies_.tolist(),
        "gram": np.ravel(model.gram_ - np.eye(len(model.gram_))).tolist(),
        "coordinates": np.ravel(model.transform(x[:3])).tolist(),
    }


def _of_metric(metric: str) -> dict[str, list[float]]:
    x, value = rows()
    with jax.enable_x64(True):
        samples = Samples(x, (value > 0).astype(np.int32))
        final = train(samples, toys.changed(CONFIG, metric=metric), n_outputs=2)
        phi = coordinates_of(final.maps, x[:3])
    return {
        "losses": _losses(final.history[-1]),
        "energies": list(final.energies),
        "log_scales": np.ravel(final.log_scale_ranges).tolist(),
        "coordinates": np.ravel(phi).tolist(),
    }


def _losses(row: dict[str, float]) -> list[float]:
    return [row[name] for name in ("gram_error", "loss_class", "loss_mde")]


def deviation(found: dict[str, list[float]], kept: dict[str, list[float]]) -> float:
    """The largest difference, relative to the size of the numbers of its kind, or to one."""
    assert set(found) == set(kept)
    return max(
        float(np.max(np.abs(np.subtract(found[name], kept[name]))))
        / max(float(np.max(np.abs(kept[name]))), 1e-3)
        for name in kept
    )


def all_measured() -> dict[str, Any]:
    """The numbers of all cases."""
    return {case: measured(case) for case in CASES}


def spread() -> dict[str, list[float]]:
    """How far programs for other processors are from the numbers that are kept, by case."""
    kept = json.loads(GOLDEN.read_text())
    told: dict[str, list[float]] = {case: [] for case in CASES}
    for flags in OTHER_PROCESSORS:
        command = [sys.executable, __file__, "print"]
        environment = os.environ | {"XLA_FLAGS": flags}
        output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        for case, found in json.loads(output).items():
            told[case].append(deviation(found, kept[case]))
    return told


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "renew"
    if asked == "renew":
        GOLDEN.write_text(json.dumps(all_measured(), indent=1) + "\n")
    else:
        print(json.dumps(all_measured() if asked == "print" else spread(), indent=1))
