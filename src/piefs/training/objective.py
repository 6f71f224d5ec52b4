"""What training minimises, and the loop on the device that does it.

`Objective` is the body of Algorithm 1's inner loop; `descend` runs it over a chunk of batches.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from jax.typing import ArrayLike

from piefs.core.energies import training_energy
from piefs.core.losses import Readout, anisotropy, cross_entropy, gram, gram_error, split_row_error
from piefs.core.maps import ScalarMap
from piefs.core.metric import Metric
from piefs.core.weighting import Weighting
from piefs.training.batches import Batch
from piefs.training.optimizers import Optimizer
from piefs.training.sharding import ROWS, of_one_device, summed_gradients

ReadoutLoss = Callable[[Array, Array, Array], Array]


class Trainable(eqx.Module):
    """What descends at once: θ_k (or a stack of all maps), the metric and the readout."""

    phi: ScalarMap
    metric: Metric
    readout: Readout


class StepRecord(NamedTuple):
    """The losses of a step and the weights they were given; `gram_error` is L_orth."""

    gram_error: Array
    loss_class: Array
    loss_mde: Array
    w_orth: Array
    w_class: Array
    w_mde: Array


Loss = Callable[[Trainable, Batch, Array, ArrayLike], tuple[Array, StepRecord]]
"""A loss of what descends, on a batch, with k maps frozen; and the record of its parts.

The last argument is the Gram error of the frozen maps on all training rows. A loss is a pytree: its
numbers are traced, so that data of another scale need no other program.
"""


class Objective(eqx.Module):
    """L = sg(w_orth) L_orth + sg(w_class) L_class + sg(w_mde) L_mde (eq:loss_function).

    `readout_loss` is None in the unsupervised mode; `anisotropy` multiplies mean (log λ)² (App. C).

    The paper's L_orth is that of the batch, whose own noise (a multiple of k²/B) closes the gate of
    the weights. With `population_gram` it is that of all `n_rows` instead: exact for the frozen
    maps, and an unbiased estimate of what the active one adds.
    """

    weighting: Weighting = eqx.field(static=True)
    readout_loss: ReadoutLoss | None = eqx.field(static=True, default=cross_entropy)
    anisotropy: float = eqx.field(static=True, default=0.0)
    population_gram: bool = eqx.field(static=True, default=False)
    n_rows: float = float("inf")

    def __call__(
        self, params: Trainable, batch: Batch, k: Array, frozen_error: ArrayLike = 0.0
    ) -> tuple[Array, StepRecord]:
        """The loss of map k (counted from 0) on a batch; the comments name Algorithm 1's lines."""
        # 4: evaluate Φ_{1:k} with θ_j fixed for j < k and the current iterate θ_k.
        phi_k, gradient = params.phi.value_and_gradient(batch.x)
        phi = batch.frozen + phi_k[:, None] * (jnp.arange(batch.frozen.shape[1]) == k)

        # 5: accumulate ‖Ĉ_k − I_k‖², ‖A∇φ_k‖² and the cross-entropy, columns j > k being zero.
        orth = self._gram_error(phi, batch.weight, k, frozen_error)
        mde = training_energy(params.metric, batch.x, gradient, batch.weight)
        class_ = jnp.zeros_like(orth)
        if self.readout_loss is not None:
            class_ = self.readout_loss(params.readout(phi), batch.target, batch.label_weight)

        # 6: refresh the weights, constants in the differentiation of L.
        weights = jax.lax.stop_gradient(self.weighting(jnp.maximum(orth, 0), class_))
        loss = weights.orth * orth + weights.class_ * class_ + weights.mde * mde
        if self.anisotropy:
            loss += self.anisotropy * anisotropy(params.metric.log_scales(batch.x), batch.weight)
        return loss, StepRecord(orth, class_, mde, *(jnp.asarray(w, loss.dtype) for w in weights))

    def _gram_error(self, phi: Array, weight: Array, k: Array, frozen_error: ArrayLike) -> Array:
        if self.population_gram:
            added = split_row_error(phi, weight, k, self.n_rows)
            return jnp.asarray(frozen_error, phi.dtype) + added
        return gram_error(gram(phi, weight), k + 1)


@partial(jax.jit, static_argnames=("optimizer", "mesh"))
def descend(
    params: Trainable,
    opt_state: optax.OptState,
    chunk: Batch,
    *,
    k: ArrayLike,
    first_step: ArrayLike,
    n_steps: ArrayLike,
    total_steps: ArrayLike,
    learning_rate: ArrayLike,
    weight_decay: ArrayLike = 0.0,
    frozen_error: ArrayLike = 0.0,
    objective: Loss,
    optimizer: Optimizer,
    mesh: Mesh | None = None,
) -> tuple[Trainable, optax.OptState, StepRecord, Array]:
    """`n_steps` steps on a chunk's batches, the sums of their records, and if all is finite.

    What is given is not donated: where numbers have become infinite, it is what to go back to. The
    rate follows the optimiser's schedule over the `total_steps` of a map. Numbers are traced:
    one compilation serves every map, every budget and every decay. With a `mesh` of devices the
    rows of the chunk are spread over them, and all else is the same on each.
    """

    def steps(chunk: Batch, params: Trainable, opt_state: optax.OptState, given: tuple) -> tuple:
        k, first_step, n_steps, total_steps, learning_rate, weight_decay, frozen_error, loss = given

        def step(i: Array, carry: tuple) -> tuple:
            params, opt_state, sums = carry
            batch = jax.tree.map(lambda a: a[i], chunk)
            gradient = jax.grad(loss, has_aux=True)
            grads, record = gradient(of_one_device(params), batch, k, frozen_error)
            rate = optimizer.rate(learning_rate, first_step + i, total_steps)
            grads = summed_gradients(grads)
            params, opt_state = optimizer.update(params, grads, opt_state, rate, weight_decay)
            return params, opt_state, jax.tree.map(jnp.add, sums, record)

        zeros = StepRecord(*(jnp.zeros((), chunk.x.dtype) for _ in StepRecord._fields))
        end = jax.lax.fori_loop(0, n_steps, step, (params, opt_state, zeros))
        return *end, is_finite(end)

    if mesh is not None:
        steps = jax.shard_map(
            steps,
            mesh=mesh,
            in_specs=(PartitionSpec(None, ROWS), *[PartitionSpec()] * 3),
            out_specs=PartitionSpec(),
        )
    numbers = (k, first_step, n_steps, total_steps, learning_rate, weight_decay, frozen_error)
    return steps(chunk, params, opt_state, (*numbers, objective))


def is_finite(tree: Any) -> Array:
    """Whether all numbers are: once one is not, it stays so to the end of a chunk."""
    leaves = [a for a in jax.tree.leaves(tree) if jnp.issubdtype(a.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in leaves]))


@jax.jit
def losses_on(params: Trainable, batch: Batch, k: ArrayLike, *, objective: Loss) -> StepRecord:
    """The losses of map k on rows that are not trained on."""
    return objective(params, batch, jnp.asarray(k), 0.0)[1]
