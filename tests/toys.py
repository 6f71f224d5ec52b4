"""Settings of models that are trained in a second or two."""

from typing import Any

SMALL: dict[str, Any] = {
    "n_components": 3,
    "steps_per_component": 60,
    "batch_size": 64,
    "hidden": (16, 16),
    "metric_hidden": (8,),
    "early_stopping": False,
    "random_state": 0,
    "log_every": 20,
}
