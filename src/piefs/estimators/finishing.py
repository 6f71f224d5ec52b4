"""From a training state to a model: whitened if so asked, on the host, in the model's precision."""

from __future__ import annotations

import numpy as np

from piefs.core.maps import n_maps
from piefs.core.model import Model, Scaling, finished
from piefs.core.ritz import not_whitened, whitening
from piefs.training.batches import Samples
from piefs.training.columns import gram_of
from piefs.training.state import TrainState


def finished_model(
    state: TrainState,
    samples: Samples,
    scaling: tuple[np.ndarray, np.ndarray],
    *,
    whiten: bool,
) -> tuple[Model, np.ndarray]:
    """The model of the maps that a state has, be training over or not, and its mixing unrounded.

    `scaling` holds center and scale of the inputs; `samples` are rows that have been scaled.
    """
    n = n_maps(state.maps)
    whitener = whitening(gram_of(state.maps, samples)) if whiten else not_whitened(n)
    readout, metric = state.readout, state.params.metric
    dtype = samples.x.dtype
    model = finished(state.maps, metric, readout, Scaling(*scaling), whitener, dtype)
    return model, whitener.mixing
