"""Physics-informed eigenfunction features with learnable scaling (PIEFS).

>>> import piefs
>>> moons = piefs.datasets.load("two-moons")
>>> model = piefs.PIEFSClassifier(n_components=2, steps_per_component=100, random_state=0)
>>> phi = model.fit(moons.train.x, moons.train.y).transform(moons.test.x)
>>> phi.shape
(1500, 2)

Names are imported when first used, so that `import piefs` itself costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piefs import callbacks, datasets, operators, plot
    from piefs.compilation import keep_compiled
    from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
    from piefs.io.checkpoints import Checkpoint
    from piefs.io.rows import open_rows
    from piefs.memory import keep_memory
    from piefs.metrics import Metric
    from piefs.operators import EigenProblem, EigenSolver
    from piefs.rotations import Rotation
    from piefs.state import TrainState
    from piefs.tuning import tune
    from piefs.weighting import LossWeights

__all__ = [
    "Checkpoint",
    "EigenProblem",
    "EigenSolver",
    "LossWeights",
    "Metric",
    "PIEFSClassifier",
    "PIEFSRegressor",
    "PIEFSTransformer",
    "Rotation",
    "TrainState",
    "callbacks",
    "datasets",
    "keep_compiled",
    "keep_memory",
    "load",
    "open_rows",
    "operators",
    "plot",
    "tune",
]

_HOMES = {
    "Checkpoint": "io.checkpoints",
    "EigenProblem": "operators",
    "EigenSolver": "operators",
    "LossWeights": "weighting",
    "Metric": "metrics",
    "PIEFSClassifier": "estimators",
    "PIEFSRegressor": "estimators",
    "PIEFSTransformer": "estimators",
    "Rotation": "rotations",
    "TrainState": "state",
    "keep_compiled": "compilation",
    "keep_memory": "memory",
    "load": "estimators",
    "open_rows": "io.rows",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"piefs.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"piefs.{name}")
    raise AttributeError(f"module 'piefs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
