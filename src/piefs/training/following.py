"""Metrics that are set again and again from the maps as these train."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx

from piefs.core.agop import outer_product
from piefs.core.maps import ScalarMap, is_single, stack
from piefs.core.objectives import Trainable
from piefs.training.batches import Samples, some_rows

N_MARKS = 20
"""How often in a turn a metric is set anew: recursive feature machines take five to ten rounds,
but each of them solves for its predictor exactly."""

MOST_ROWS = 4096


def passes_mark(before: int, after: int, total: int) -> bool:
    """Whether the steps from `before` to `after` complete one of the turn's N_MARKS shares."""
    return before * N_MARKS // total < after * N_MARKS // total


def follow_maps(
    params: Trainable, frozen: Sequence[ScalarMap], samples: Samples, seed: int
) -> Trainable:
    """What descends, its metric set from all maps so far, on at most MOST_ROWS training rows."""
    maps = params.phi
    if is_single(maps):
        maps = stack([*frozen, maps])
    n = len(samples)
    rows = some_rows(seed, n, MOST_ROWS) if n > MOST_ROWS else slice(n)
    found = outer_product(maps, samples.x[rows], samples.weights[rows])
    metric: Any = params.metric
    return eqx.tree_at(lambda p: p.metric, params, metric.refreshed(found))
