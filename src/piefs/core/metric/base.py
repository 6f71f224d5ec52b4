"""What a metric is, and the one that does nothing."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from piefs.core.gradients import GradientField


class Metric(eqx.Module):
    """A field of linear maps A(x) acting on gradients.

    `block_rows` is a hint to training: energies of larger batches are summed over blocks of about
    that many rows, which keeps the metric's intermediate (rows, d) arrays in a core's cache.
    `follows_maps` says that the metric is not learned by descent but set from the maps' average
    gradient outer product, now and then (see `agop`).
    """

    block_rows: ClassVar[int | None] = None
    follows_maps: ClassVar[bool] = False

    @abstractmethod
    def apply(self, x: Array, v: GradientField) -> GradientField:
        """The field x ↦ A(x)v(x)."""

    @abstractmethod
    def log_scales(self, x: Array) -> Array:
        """The logarithms log λ_i(x) of the singular values of A(x), shape (n, d)."""


class Off(Metric):
    """A = I: the plain Dirichlet energy. The gradient stays factored."""

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """The field itself."""
        return v

    def log_scales(self, x: Array) -> Array:
        """Zeros."""
        return jnp.zeros_like(x)
