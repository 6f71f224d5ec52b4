"""What a fit begins from where it is not random: an earlier fit, or a graph's eigenmaps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from piefs.core.losses import Readout
from piefs.core.maps import ScalarMap, unstack
from piefs.core.model import Model
from piefs.errors import InputError
from piefs.estimators.measures import probe_cross_entropy
from piefs.training import pretrain
from piefs.training.batches import Samples
from piefs.training.callbacks import Preparation
from piefs.training.config import Settings
from piefs.training.graphs import eigenmaps
from piefs.training.state import WarmStart

GRAPH = "neighbourhood graph"


def as_trained(model: Model) -> WarmStart:
    """The maps of a fitted model with the readout on them as they are, before mixing."""
    readout = Readout(model.readout.weights @ model.mixing, model.readout.bias)
    return WarmStart(unstack(model.maps), model.metric, readout)


def graph_samples(samples: Samples, settings: Settings, tell: Preparation) -> Samples:
    """The rows that the graph is built on, with their eigenmaps for targets."""
    tell(GRAPH, 0, 1)
    rows = pretrain.subsample(len(samples), settings.seed, settings.graph_rows)
    x = samples.x[rows]
    targets = eigenmaps(x, settings.n_components).astype(x.dtype)
    tell(GRAPH, 1, 1)
    return Samples(x, targets, samples.weights[rows])


def distilled_maps(
    samples: Samples, settings: Settings, tell: Preparation
) -> tuple[list[ScalarMap], Settings]:
    """Maps fitted to a graph's eigenmaps, and the settings with T_class as a number."""
    rows = pretrain.subsample(len(samples), settings.seed, settings.graph_rows)
    n_components = settings.n_components
    if len(rows) < n_components + 2:
        raise InputError(
            f"graph-Laplacian pretraining of {n_components} maps needs at least "
            f"{n_components + 2} rows, not {len(rows)}"
        )
    tell(GRAPH, 0, 1)
    x = samples.x[rows]
    targets = eigenmaps(x, n_components)
    tell(GRAPH, 1, 1)
    if getattr(settings.weighting, "t_class", None) == "calibrated":
        if samples.target is None or samples.target.ndim > 1:
            raise InputError('t_class="calibrated" needs classes')
        labeled = samples.label_weights[rows] > 0
        t_class = probe_cross_entropy(targets[labeled], samples.target[rows][labeled])
        settings = replace(settings, weighting=replace(settings.weighting, t_class=t_class))
    maps = pretrain.graph_laplacian_maps(
        x,
        targets,
        hidden=settings.hidden,
        activation=settings.activation,
        seed=settings.seed,
        watch=partial(tell, "maps that follow the graph"),
    )
    return maps, settings
