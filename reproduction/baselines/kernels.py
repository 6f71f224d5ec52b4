"""Kernels whose eigenfunctions NeuralEF learns, evaluated on the rows of a batch."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial.distance import pdist

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
