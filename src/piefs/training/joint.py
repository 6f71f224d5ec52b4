"""All maps at once: the joint objective, and its nested form, which keeps the maps in order.

Greedy training squeezes all classes into the first maps, which makes those rough, and later ones
cannot mend them. Trained together the maps share the work. What that loses is their order; losses
on prefixes bring it back: with `prefix_weight` μ > 0, the first p maps must classify on their own,
for every p, through a readout of their own.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from piefs.core.arrays import numpy_for
from piefs.core.energies import training_energy
from piefs.core.gradients import FactoredField
from piefs.core.losses import (
    Readout,
    anisotropy,
    cross_entropy,
    expectation,
    gram,
    gram_error,
    init_readout,
    split_gram_error,
)
from piefs.training.batches import Batch
from piefs.training.objective import ReadoutLoss, StepRecord, Trainable


class JointObjective(eqx.Module):
    """L = L_class + μ mean_p L_class(φ_1 … φ_p) + w_orth ‖C − I‖² + w_mde Σ_k ⟨φ_k, φ_k⟩_mde.

    The weights are constants. `population_gram` takes the unbiased estimate of ‖C − I‖² from
    batches of `n_rows` (see `split_gram_error`); without it the batch's own Gram matrix counts,
    which is right where a batch is all there is. `readout_loss` is None in the unsupervised mode.
    """

    orthogonality: float
    smoothness: float
    prefix_weight: float = 0.0
    n_rows: float = float("inf")
    readout_loss: ReadoutLoss | None = eqx.field(static=True, default=cross_entropy)
    population_gram: bool = eqx.field(static=True, default=True)
    anisotropy: float = eqx.field(static=True, default=0.0)

    def __call__(
        self, params: Trainable, batch: Batch, k: Array, frozen_error: ArrayLike = 0.0
    ) -> tuple[Array, StepRecord]:
        """The loss of a stack of maps on a batch."""
        phi, mde = values_and_energy(params, batch)
        orth = self._gram_error(phi, batch.weight)
        class_, readout_loss = self._readout_losses(params.readout, phi, batch)
        loss = self.orthogonality * orth + readout_loss + self.smoothness * mde
        if self.anisotropy:
            loss += self.anisotropy * anisotropy(params.metric.log_scales(batch.x), batch.weight)
        weights = (self.orthogonality, float(self.readout_loss is not None), self.smoothness)
        return loss, StepRecord(orth, class_, mde, *(jnp.asarray(w, loss.dtype) for w in weights))

    def _gram_error(self, phi: Array, weight: Array) -> Array:
        if self.population_gram:
            return split_gram_error(phi, weight, self.n_rows)
        return gram_error(gram(phi, weight))

    def _readout_losses(self, readouts: Readout, phi: Array, batch: Batch) -> tuple[Array, Array]:
        """L_class of all maps, and that plus μ times its mean over the shorter prefixes."""
        loss_of = self.readout_loss
        if loss_of is None:
            return jnp.zeros((), phi.dtype), jnp.zeros((), phi.dtype)
        losses = jax.vmap(lambda readout: loss_of(readout(phi), batch.target, batch.label_weight))(
            within_prefixes(readouts)
        )
        if len(losses) == 1:
            return losses[-1], losses[-1]
        return losses[-1], losses[-1] + self.prefix_weight * jnp.mean(losses[:-1])


class SpectralObjective(eqx.Module):
    """L = E|Φ(x) − ψ(x)|² + w_mde Σ_k ⟨φ_k, φ_k⟩_mde, with eigenmaps ψ of a graph for targets.

    Without labels, in many dimensions, the energy at the sample points alone is minimised by
    functions that are flat around each point and arbitrary between them. Eigenmaps of a graph are
    smooth from neighbour to neighbour; the maps learn to continue them.
    """

    smoothness: float
    anisotropy: float = eqx.field(static=True, default=0.0)

    def __call__(
        self, params: Trainable, batch: Batch, k: Array, frozen_error: ArrayLike = 0.0
    ) -> tuple[Array, StepRecord]:
        """The loss of a stack of maps on a batch; the distance is recorded as `loss_class`."""
        phi, mde = values_and_energy(params, batch)
        distance = expectation(jnp.sum((phi - batch.target) ** 2, axis=1), batch.weight)
        loss = distance + self.smoothness * mde
        if self.anisotropy:
            loss += self.anisotropy * anisotropy(params.metric.log_scales(batch.x), batch.weight)
        orth = split_gram_error(phi, batch.weight)
        weights = (jnp.asarray(w, loss.dtype) for w in (0.0, 1.0, self.smoothness))
        return loss, StepRecord(orth, distance, mde, *weights)


def values_and_energy(params: Trainable, batch: Batch) -> tuple[Array, Array]:
    """Φ on a batch, shape (n, K), and the sum of the maps' energies."""
    values, gradients = jax.vmap(lambda phi: phi.value_and_gradient(batch.x))(params.phi)

    def energy_of_one(gradient: FactoredField) -> Array:
        return training_energy(params.metric, batch.x, gradient, batch.weight)

    return values.T, jnp.sum(jax.vmap(energy_of_one)(gradients))


def init_prefix_readouts(n_outputs: int, n_components: int, dtype: Any, *, nested: bool) -> Readout:
    """A stack of readouts of zeros: one for each prefix of the maps, or only that of all maps."""
    n_prefixes = n_components if nested else 1
    one = init_readout(n_outputs, n_components, dtype)
    return jax.tree.map(lambda a: np.broadcast_to(a, (n_prefixes, *a.shape)).copy(), one)


def all_maps_readout(readouts: Readout) -> Readout:
    """The readout of all maps, the last of the stack."""
    return jax.tree.map(lambda a: numpy_for(a).asarray(a)[-1], readouts)


def within_prefixes(readouts: Readout) -> Readout:
    """The readouts blind to maps beyond their prefix; the last one sees all."""
    n_prefixes, _, n_components = readouts.weights.shape
    length = n_components - n_prefixes + 1 + jnp.arange(n_prefixes)
    seen = jnp.arange(n_components) < length[:, None]
    return Readout(readouts.weights * seen[:, None, :], readouts.bias)
