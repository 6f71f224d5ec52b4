"""What training minimises: an objective is a loss of sums over a batch's rows.

`SequentialObjective` is the body of Algorithm 1's inner loop: one map descends, those before it are
frozen. Greedy training makes the first maps rough, since they must tell all classes apart; under
`JointObjective` all maps share the work, and losses on prefixes of the maps keep their order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import energy_sum
from piefs.core.losses import (
    Readout,
    ReadoutLoss,
    WeightedSum,
    cross_entropy,
    gram_error,
    gram_sum,
    half_sums,
    row_half_sums,
    split_gram_error,
    weighted_sum,
)
from piefs.core.maps import ScalarMap
from piefs.core.metric import MetricField
from piefs.core.weighting import LossWeights, Weighting


class Batch(NamedTuple):
    """One mini-batch, or a chunk of them with a leading axis of steps.

    x: (B, d); frozen: (B, K), the cached columns φ_j(x) for j < k and zeros beyond; target,
    weight, label_weight: (B,).
    """

    x: Array
    frozen: Array
    target: Array
    weight: Array
    label_weight: Array


class Trainable(eqx.Module):
    """What descends at once: θ_k (or a stack of all maps), the metric and the readout."""

    phi: ScalarMap
    metric: MetricField
    readout: Readout


class StepRecord(NamedTuple):
    """The losses of a step and the weights they were given; `gram_error` is L_orth."""

    gram_error: Array
    loss_class: Array
    loss_mde: Array
    w_orth: Array
    w_class: Array
    w_mde: Array


Total = Callable[[Any], Any]
"""Adds up sums over rows, a pytree, over all devices that share a batch."""


def of_one_device(sums: Any) -> Any:
    """The `Total` of a batch that is not shared."""
    return sums


Losses = tuple[Array, StepRecord]


class Objective(eqx.Module):
    """A loss of sums over a batch's rows. It is a pytree: its numbers are traced."""

    @abstractmethod
    def __call__(self, params: Trainable, batch: Batch, total: Total = of_one_device) -> Losses:
        """The loss and its parts."""

    def after(self, k: int, frozen_error: float) -> Objective:
        """The objective once k maps are frozen, whose Gram error on all rows is `frozen_error`."""
        return self


class SequentialObjective(Objective):
    """L = sg(w_orth) L_orth + sg(w_class) L_class + sg(w_mde) L_mde (eq:loss_function).

    `readout_loss` is None in the unsupervised mode; `anisotropy` multiplies mean (log λ)² (App. C).

    The paper's L_orth is that of the batch, whose own noise (a multiple of k²/B) closes the gate of
    the weights. With `population_gram` it is that of all `n_rows`: exact for the frozen maps, and
    unbiased for what the active one adds. Map k, counted from 0, descends.
    """

    weighting: Weighting = eqx.field(static=True)
    readout_loss: ReadoutLoss | None = eqx.field(static=True, default=cross_entropy)
    anisotropy: float = eqx.field(static=True, default=0.0)
    population_gram: bool = eqx.field(static=True, default=False)
    n_rows: float = float("inf")
    k: int | Array = 0
    frozen_error: float | Array = 0.0

    def after(self, k: int, frozen_error: float) -> SequentialObjective:
        return replace(self, k=k, frozen_error=frozen_error)

    def __call__(self, params: Trainable, batch: Batch, total: Total = of_one_device) -> Losses:
        """L on a batch. Comments name Algorithm 1's lines."""
        # 4: evaluate Φ_{1:k} with θ_j fixed for j < k and the current iterate θ_k.
        phi_k, gradient = params.phi.value_and_gradient(batch.x)
        phi = batch.frozen + phi_k[:, None] * (jnp.arange(batch.frozen.shape[1]) == self.k)
        # 5: accumulate Ĉ_k, ‖A∇φ_k‖² and the cross-entropy, columns j > k being zero.
        if self.population_gram:
            gram = row_half_sums(phi, batch.weight, self.k)
        else:
            gram = gram_sum(phi, batch.weight)
        energy = energy_sum(params.metric, batch.x, gradient, batch.weight)
        energy, readout = WeightedSum(energy, jnp.sum(batch.weight)), None
        if self.readout_loss is not None:
            losses = self.readout_loss(params.readout(phi), batch.target)
            readout = weighted_sum(losses, batch.label_weight)
        scales = _log_scales(self.anisotropy, params, batch)
        gram, energy, readout, scales = total((gram, energy, readout, scales))
        # 6: refresh the weights from the totals, constants in the differentiation.
        if self.population_gram:
            orth = self.frozen_error + split_gram_error(gram, self.n_rows)
        else:
            orth = gram_error(gram.mean, self.k + 1)
        class_ = jnp.zeros_like(orth) if readout is None else readout.mean
        weights = jax.lax.stop_gradient(self.weighting(jnp.maximum(orth, 0), class_))
        loss, record = _weighted(weights, orth, class_, energy.mean)
        return loss + _penalty(self.anisotropy, scales), record


class JointObjective(Objective):
    """L = L_class + μ mean_p L_class(φ_1 … φ_p) + w_orth ‖C − I‖² + w_mde Σ_k ⟨φ_k, φ_k⟩_mde.

    With `prefix_weight` μ > 0 the first p maps must classify on their own, for every p, through a
    readout of their own. `population_gram` takes the unbiased estimate of ‖C − I‖² (see
    `split_gram_error`), else the batch's own counts: right if it holds all rows.
    """

    orthogonality: float
    smoothness: float
    prefix_weight: float = 0.0
    n_rows: float = float("inf")
    readout_loss: ReadoutLoss | None = eqx.field(static=True, default=cross_entropy)
    population_gram: bool = eqx.field(static=True, default=True)
    anisotropy: float = eqx.field(static=True, default=0.0)

    def __call__(self, params: Trainable, batch: Batch, total: Total = of_one_device) -> Losses:
        """L of a stack of maps, and its parts."""
        phi, energy = _values_and_energy(params, batch)
        gram = (half_sums if self.population_gram else gram_sum)(phi, batch.weight)
        readout = None
        if (loss_of := self.readout_loss) is not None:
            losses = jax.vmap(lambda readout: loss_of(readout(phi), batch.target))
            by_prefix = losses(within_prefixes(params.readout)).T
            readout = weighted_sum(by_prefix, batch.label_weight)
        scales = _log_scales(self.anisotropy, params, batch)
        gram, energy, readout, scales = total((gram, energy, readout, scales))
        if self.population_gram:
            orth = split_gram_error(gram, self.n_rows)
        else:
            orth = gram_error(gram.mean)
        class_, of_prefixes = jnp.zeros_like(orth), 0.0
        if readout is not None:
            *shorter, class_ = readout.mean
            of_prefixes = self.prefix_weight * sum(shorter) / max(len(shorter), 1)
        weights = LossWeights(self.orthogonality, float(readout is not None), self.smoothness)
        loss, record = _weighted(weights, orth, class_, energy.mean)
        return loss + of_prefixes + _penalty(self.anisotropy, scales), record


class SpectralObjective(Objective):
    """L = E|Φ(x) − ψ(x)|² + w_mde Σ_k ⟨φ_k, φ_k⟩_mde, with eigenmaps ψ of a graph for targets.

    Without labels, in many dimensions, functions that are flat around each point and arbitrary
    between them minimise the energy at the points alone; eigenmaps of a graph are smooth from
    neighbour to neighbour. `has_energy` False spares the energy.
    """

    smoothness: float
    anisotropy: float = eqx.field(static=True, default=0.0)
    has_energy: bool = eqx.field(static=True, default=True)

    def __call__(self, params: Trainable, batch: Batch, total: Total = of_one_device) -> Losses:
        """L of a stack of maps. The distance is recorded as `loss_class`, L_orth only recorded."""
        if self.has_energy:
            phi, energy = _values_and_energy(params, batch)
        else:
            phi = params.phi.coordinates(batch.x)
            energy = WeightedSum(jnp.zeros((), phi.dtype), jnp.sum(batch.weight))
        distance = weighted_sum(jnp.sum((phi - batch.target) ** 2, axis=1), batch.weight)
        scales = _log_scales(self.anisotropy, params, batch)
        sums = half_sums(phi, batch.weight), energy, distance, scales
        gram, energy, distance, scales = total(sums)
        orth = jax.lax.stop_gradient(split_gram_error(gram))
        weights = LossWeights(0.0, 1.0, self.smoothness)
        loss, record = _weighted(weights, orth, distance.mean, energy.mean)
        return loss + _penalty(self.anisotropy, scales), record


def _weighted(weights: LossWeights, orth: Array, class_: Array, mde: Array) -> Losses:
    loss = weights.orth * orth + weights.class_ * class_ + weights.mde * mde
    return loss, StepRecord(orth, class_, mde, *(jnp.asarray(w, loss.dtype) for w in weights))


def _values_and_energy(params: Trainable, batch: Batch) -> tuple[Array, WeightedSum]:
    """Φ on a batch, shape (n, K), and the sum of the maps' energies."""
    values, gradients = jax.vmap(lambda phi: phi.value_and_gradient(batch.x))(params.phi)
    energies = jax.vmap(lambda gradient: energy_sum(params.metric, batch.x, gradient, batch.weight))
    return values.T, WeightedSum(jnp.sum(energies(gradients)), jnp.sum(batch.weight))


def _log_scales(anisotropy: float, params: Trainable, batch: Batch) -> WeightedSum | None:
    if not anisotropy:
        return None
    squares = jnp.mean(params.metric.log_scales(batch.x) ** 2, axis=-1)
    return weighted_sum(squares, batch.weight)


def _penalty(anisotropy: float, scales: WeightedSum | None) -> Array | float:
    return 0.0 if scales is None else anisotropy * scales.mean


# --- readouts of prefixes ----------------------------------------------------------------------


def for_prefixes(readout: Readout, *, nested: bool) -> Readout:
    """A stack of copies: one for each prefix of the maps, or only one, for all maps."""
    n_prefixes = readout.weights.shape[1] if nested else 1
    return jax.tree.map(lambda a: np.broadcast_to(a, (n_prefixes, *a.shape)).copy(), readout)


def within_prefixes(readouts: Readout) -> Readout:
    """The readouts blind to maps beyond their prefix; the last one sees all."""
    n_prefixes, _, n_components = readouts.weights.shape
    length = n_components - n_prefixes + 1 + jnp.arange(n_prefixes)
    seen = jnp.arange(n_components) < length[:, None]
    return Readout(readouts.weights * seen[:, None, :], readouts.bias)
