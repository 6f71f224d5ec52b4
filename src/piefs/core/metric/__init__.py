"""The learnable metric A(x) = Λ(x)U(x) inside the Dirichlet energy (paper, Sec. 2.4).

A metric is a pytree with two methods (see `Metric`); training knows nothing else about it. To
plug in your own, subclass `Metric`, or combine the classes here, and pass a function
`(key, n_features) -> Metric` wherever a metric's name is accepted.
"""

from piefs.core.metric.agop import ClosedForm, best_log_scales
from piefs.core.metric.base import Metric, Off
from piefs.core.metric.factory import METRICS, SCOPES, MetricFactory, check_options, init_metric
from piefs.core.metric.rotated import Composed, RotatedDiag, SharedRotation
from piefs.core.metric.scales import CONSTRAINTS, Diag, SharedDiag, constrained

__all__ = [
    "CONSTRAINTS",
    "METRICS",
    "SCOPES",
    "ClosedForm",
    "Composed",
    "Diag",
    "Metric",
    "MetricFactory",
    "Off",
    "RotatedDiag",
    "SharedDiag",
    "SharedRotation",
    "best_log_scales",
    "check_options",
    "constrained",
    "init_metric",
]
