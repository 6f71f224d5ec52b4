"""NeuralEF (Deng, Shi, Zhu 2022): eigenfunctions of a kernel, learned by K scalar networks.

The eigenfunctions of (Tf)(x) = E_x′ k(x, x′) f(x′) solve, one after the other,

    max R_jj − Σ_{i<j} R_ij²/R_ii  subject to  E ψ_j² = 1,   R_ij = E E ψ_i(x) k(x, x′) ψ_j(x′),

with R_jj the eigenvalue at the optimum. All K problems are ascended at once on mini-batches; ψ_i is
held fixed in the problem of ψ_j, and the constraint holds by normalising outputs over the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial.distance import pdist

from piefs.core.maps import ScalarMap, init_map, stack
from piefs.core.networks import generator
from piefs.training.batches import Samples, chunk_length, chunks, prefetched
from piefs.training.config import Optimizer
from piefs.training.step import Steps, begun, descend

N_MEDIAN_ROWS = 1000


class Kernel(eqx.Module):
    """A positive semi-definite function k(x, x′), as a matrix over the rows of a batch."""

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """The matrix k(x_i, x_j), shape (B, B), for rows of shape (B, d)."""


class RBF(Kernel):
    """k(x, x′) = exp(−|x − x′|²/2ℓ²), with ℓ the `bandwidth`."""

    bandwidth: Array

    def __call__(self, x: Array) -> Array:
        """The matrix k(x_i, x_j), shape (B, B)."""
        # Distances ignore a shift of all rows; without it, less is lost to rounding below.
        x = x - jnp.mean(x, axis=0)
        square = jnp.sum(x**2, axis=1)
        distance = jnp.maximum(square[:, None] + square[None, :] - 2 * x @ x.T, 0)
        return jnp.exp(-distance / (2 * self.bandwidth**2))


class ArcCosine(Kernel):
    """The covariance of a random ReLU network with `depth` infinitely wide hidden layers.

    k₀ = x·x′/d, and each layer maps the cosine c of the angle between two inputs to
    (√(1 − c²) + (π − arccos c) c)/π, lengths unchanged: the arc-cosine kernel of degree one (Cho
    and Saul 2009), iterated. Weights have variance 2/fan_in (1/d in the first layer); no biases.
    """

    depth: int = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        """The matrix k(x_i, x_j), shape (B, B)."""
        product = x @ x.T / x.shape[1]
        length = jnp.sqrt(jnp.diagonal(product))
        lengths = length[:, None] * length[None, :]
        is_zero = lengths == 0
        cosine = jnp.where(is_zero, 0, product / jnp.where(is_zero, 1, lengths))
        for _ in range(self.depth):
            c = jnp.clip(cosine, -1, 1)
            cosine = (jnp.sqrt(1 - c**2) + (jnp.pi - jnp.arccos(c)) * c) / jnp.pi
        return lengths * cosine


def median_distance(x: np.ndarray, seed: int) -> float:
    """The median distance between rows, over at most 1,000 of them; 1 where all rows are equal.

    Where more than half of the pairs coincide the median is zero, and the mean stands in for it.
    """
    rows = np.random.default_rng([seed, len(x)]).permutation(len(x))[:N_MEDIAN_ROWS]
    distances = pdist(x[rows].astype(np.float64))
    if len(distances) == 0:
        return 1.0
    return float(np.median(distances) or np.mean(distances) or 1.0)


AVERAGING = 0.01

_adam = Optimizer("adam", 0.0)


class Eigenfunctions(eqx.Module):
    """ψ(x) = h((x − center)/scale)/√(mean square of h), with h a stack of K scalar networks.

    `scale` is one number for all inputs: the geometry that the kernel sees is not distorted.
    """

    center: Array
    scale: Array
    maps: ScalarMap
    mean_square: Array

    def outputs(self, x: Array) -> Array:
        """h, shape (n, K): the networks' outputs before normalisation."""
        return self.maps.coordinates((x - self.center) / self.scale)

    def __call__(self, x: Array) -> Array:
        """ψ(x), shape (n, K), with the running mean squares: rows do not see each other."""
        return self.outputs(x) * jax.lax.rsqrt(self.mean_square)


def normalized(h: Array) -> tuple[Array, Array]:
    """h/√(mean h²) over the batch (n, K), so that Σ ψ_j² = n; and the mean squares, (K,)."""
    mean_square = jnp.mean(h**2, axis=0) + jnp.finfo(h.dtype).tiny
    return h * jax.lax.rsqrt(mean_square), mean_square


def objective(psi: Array, kernel: Array) -> Array:
    """Σ_j (R_jj − Σ_{i<j} R_ij²/R_ii) with R = ψᵀ k ψ/B², each summand a function of ψ_j alone.

    psi: (B, K), kernel: (B, B). Gradients stop at ψ_i, i < j, in the penalty.
    """
    image = kernel @ psi / len(psi) ** 2
    quotients = jnp.sum(psi * image, axis=0)
    products = jnp.triu(jax.lax.stop_gradient(psi).T @ image, 1)
    # R_ii is positive but for rounding, whose share of the largest eigenvalue is its floor.
    precision = jnp.finfo(psi.dtype)
    floor = precision.eps * jnp.mean(jnp.diagonal(kernel)) + precision.tiny
    fixed = jnp.maximum(jax.lax.stop_gradient(quotients), floor)
    return jnp.sum(quotients) - jnp.sum(products**2 / fixed[:, None])


def eigenvalue_estimates(psi: Array, kernel: Array) -> Array:
    """E k(x, x′)ψ_j(x)ψ_j(x′) over pairs of different rows, shape (K,).

    R_jj also pairs each row with itself, which adds about E k(x, x)/B to every eigenvalue.
    """
    n = len(psi)
    pairs = jnp.sum(psi * (kernel @ psi), axis=0) - jnp.diagonal(kernel) @ psi**2
    return pairs / (n * (n - 1))


class NeuralEFLoss(eqx.Module):
    """The objective's negative on a batch of rows, recorded with what is averaged over steps."""

    kernel: Kernel
    center: Array
    scale: Array

    def __call__(self, maps: ScalarMap, batch: tuple, total: Any = None) -> tuple[Array, tuple]:
        """The value, and the batch's share of the mean squares and of the eigenvalues."""
        x, share = batch
        psi, mean_square = normalized(maps.coordinates((x - self.center) / self.scale))
        matrix = self.kernel(x)
        value = -objective(psi, matrix)
        return value, (share * mean_square, share * eigenvalue_estimates(psi, matrix))


def averaging(first_step: int, n_steps: int) -> tuple[np.ndarray, float]:
    """The share of each of these steps in running averages, and that of all steps before them.

    A plain average at first, an exponential one from step 1/AVERAGING on.
    """
    shares = np.maximum(1 / (first_step + 1 + np.arange(n_steps)), AVERAGING)
    kept = np.cumprod((1 - shares)[::-1])[::-1]
    return shares * np.append(kept[1:], 1.0), float(kept[0])


def fresh_maps(seed: int, n_maps: int, n_features: int, hidden: Sequence[int]) -> ScalarMap:
    """A stack of random networks in single precision."""
    streams = (generator(seed, k) for k in range(n_maps))
    return stack([init_map(one, n_features, hidden, dtype=jnp.float32) for one in streams])


def learn_eigenfunctions(
    x: np.ndarray,
    kernel: Kernel,
    *,
    n_components: int,
    hidden: Sequence[int],
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> tuple[Eigenfunctions, np.ndarray]:
    """The leading eigenfunctions of a kernel under the density of the rows x, and eigenvalues."""
    n, d = x.shape
    mean = x.mean(axis=0, dtype=np.float64).astype(x.dtype)
    deviation = np.sqrt(np.mean((x - mean) ** 2, dtype=np.float64)) or 1.0
    center, scale = jnp.asarray(mean), jnp.asarray(deviation, x.dtype)
    maps = fresh_maps(seed, n_components, d, hidden)
    moments = begun(_adam, maps)
    averages = (np.zeros(n_components, x.dtype),) * 2
    loss = NeuralEFLoss(kernel, center, scale)
    feed = chunks(
        Samples(x),
        np.zeros((n, 0), x.dtype),
        seed=seed,
        k=0,
        batch_size=batch_size,
        first_step=0,
        n_steps=n_steps,
        length=chunk_length(batch_size, d, x.itemsize, n_steps),
    )
    for chunk, first_step, length in prefetched(feed):
        weights, kept = averaging(first_step, length)
        shares = np.zeros(len(chunk.x), x.dtype)
        shares[:length] = weights
        steps = Steps(first_step, length, n_steps, learning_rate)
        maps, moments, sums, _ = descend(
            maps, moments, (chunk.x, shares), loss, steps, optimizer=_adam
        )
        averages = tuple(
            kept * old + np.asarray(new) for old, new in zip(averages, sums, strict=True)
        )
    mean_square, eigenvalues = averages
    learned = Eigenfunctions(center, scale, maps, jnp.asarray(mean_square, x.dtype))
    return learned, eigenvalues.astype(x.dtype)
