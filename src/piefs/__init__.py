"""Physics-informed eigenfunction features with learnable scaling (PIEFS).

>>> import piefs
>>> moons = piefs.data.load("two-moons")
>>> model = piefs.PIEFSClassifier(n_components=2, steps_per_component=100, random_state=0)
>>> phi = model.fit(moons.train.x, moons.train.y).transform(moons.test.x)
>>> phi.shape
(1500, 2)

Names are imported when first used, so that `import piefs` itself costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piefs import callbacks, data, operators, plot
    from piefs.app.search import tune
    from piefs.core.metric import MetricField
    from piefs.core.rotations import Rotation
    from piefs.core.weighting import Dampened, LossWeights, Static
    from piefs.data.streamed import open_rows
    from piefs.estimators import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
    from piefs.operators import EigenProblem, EigenSolver
    from piefs.training.checkpoint import Checkpoint
    from piefs.training.config import Metric, Optimizer
    from piefs.training.runtime import keep_compiled
    from piefs.training.sharding import sharded
    from piefs.training.state import TrainState

__all__ = [
    "Checkpoint",
    "Dampened",
    "EigenProblem",
    "EigenSolver",
    "LossWeights",
    "Metric",
    "MetricField",
    "Optimizer",
    "PIEFSClassifier",
    "PIEFSRegressor",
    "PIEFSTransformer",
    "Rotation",
    "Static",
    "TrainState",
    "callbacks",
    "data",
    "keep_compiled",
    "load",
    "open_rows",
    "operators",
    "plot",
    "sharded",
    "tune",
]

_HOMES = {
    "Checkpoint": "training.checkpoint",
    "Dampened": "core.weighting",
    "EigenProblem": "operators",
    "EigenSolver": "operators",
    "LossWeights": "core.weighting",
    "Metric": "training.config",
    "MetricField": "core.metric",
    "Optimizer": "training.config",
    "PIEFSClassifier": "estimators",
    "PIEFSRegressor": "estimators",
    "PIEFSTransformer": "estimators",
    "Rotation": "core.rotations",
    "Static": "core.weighting",
    "TrainState": "training.state",
    "keep_compiled": "training.runtime",
    "load": "estimators",
    "open_rows": "data.streamed",
    "sharded": "training.sharding",
    "tune": "app.search",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("piefs-learn")
    if name in _HOMES:
        return getattr(import_module(f"piefs.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"piefs.{name}")
    raise AttributeError(f"module 'piefs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
