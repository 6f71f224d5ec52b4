"""What a fit begins from where it is not random: an earlier fit, or a graph's eigenmaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from piefs.core.losses import Readout
from piefs.core.maps import ScalarMap, unstack
from piefs.core.model import Model
from piefs.errors import InputError
from piefs.estimators.measures import probe_cross_entropy
from piefs.training.batches import Samples
from piefs.training.config import Settings
from piefs.training.graph import Tell, distilled, graph_samples
from piefs.training.state import WarmStart


def as_trained(model: Model, samples: Samples, settings: Settings) -> WarmStart:
    """The maps of a fitted model with the readout on them as they are, before mixing."""
    net = model.maps.net
    n_maps, n_features = net.weights[0].shape[:2]
    if (n_maps, n_features) != (settings.n_components, samples.x.shape[1]):
        raise InputError(
            f"pretraining is a model of {n_maps} maps of {n_features} features, and n_components="
            f"{settings.n_components} maps of {samples.x.shape[1]} features are to be fitted"
        )
    readout = Readout(model.readout.weights @ model.mixing, model.readout.bias)
    return WarmStart(unstack(model.maps), model.metric, readout)


def distilled_maps(
    samples: Samples, settings: Settings, tell: Tell
) -> tuple[Sequence[ScalarMap], Settings]:
    """Maps fitted to a graph's eigenmaps, and the settings with T_class as a number."""
    n_components, n_rows = settings.n_components, min(len(samples), settings.graph_rows)
    if n_rows < n_components + 2:
        raise InputError(
            f"graph-Laplacian pretraining of {n_components} maps needs at least "
            f"{n_components + 2} rows, not {n_rows}"
        )
    graph, rows = graph_samples(samples, settings, tell)
    if getattr(settings.weighting, "t_class", None) == "calibrated":
        if samples.target is None or samples.target.ndim > 1:
            raise InputError('t_class="calibrated" needs classes')
        labeled = samples.label_weights[rows] > 0
        t_class = probe_cross_entropy(graph.targets[labeled], samples.target[rows][labeled])
        settings = replace(settings, weighting=replace(settings.weighting, t_class=t_class))
    return distilled(graph, settings, tell), settings
