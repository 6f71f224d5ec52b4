"""From a training state to a model: whitened if so asked, on the host, in the model's precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from piefs.core.losses import Readout
from piefs.core.maps import n_maps
from piefs.core.model import Model
from piefs.core.ritz import whitening
from piefs.training.batches import Samples
from piefs.training.columns import gram_of
from piefs.training.state import TrainState


def finished_model(
    state: TrainState,
    samples: Samples,
    scaling: tuple[np.ndarray, np.ndarray],
    *,
    whiten: bool,
) -> tuple[Any, np.ndarray]:
    """The model of the maps that a state has, be training over or not, and its mixing unrounded.

    `scaling` holds center and scale of the inputs; `samples` are rows that have been scaled.
    """
    dtype, n = samples.x.dtype, n_maps(state.maps)
    mixing = unmixing = np.eye(n)
    if whiten:
        mixing, unmixing = whitening(gram_of(state.maps, samples))
    readout = jax.tree.map(np.asarray, state.readout)
    model = Model(
        jnp.asarray(scaling[0], dtype),
        jnp.asarray(scaling[1], dtype),
        state.maps,
        jnp.asarray(mixing, dtype),
        state.params.metric,
        Readout(readout.weights[:, :n] @ unmixing, readout.bias),
    )
    # Host arrays: they pickle and copy without a device, and keep their precision.
    return jax.tree.map(lambda a: np.asarray(a, dtype), model), mixing
