"""The metric A(x) of an operator: given, not learned; constant, a function, or singular."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import DenseField, GradientField
from piefs.core.metric import Metric, Off
from piefs.errors import InputError


class Constant(Metric):
    """One matrix A for all points, of any rank."""

    matrix: Array

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Av, factored where v is."""
        return v.transformed_by(self.matrix)

    def log_scales(self, x: Array) -> Array:
        """The logarithms of A's singular values; −∞ where it is singular."""
        values = jnp.linalg.svd(self.matrix, compute_uv=False)
        return jnp.broadcast_to(jnp.log(values), x.shape)


class Field(Metric):
    """A matrix A(x) for each point, by a function (n, d) → (n, d, d)."""

    function: Callable[[Array], Array] = eqx.field(static=True)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """A(x)v(x)."""
        return DenseField(jnp.einsum("nij,nj->ni", self.function(x), v.dense()))

    def log_scales(self, x: Array) -> Array:
        """The logarithms of A(x)'s singular values; −∞ where it is singular."""
        return jnp.log(jnp.linalg.svd(self.function(x), compute_uv=False))


def as_metric(given: Any, dimension: int) -> Metric:
    """A metric from None (A = I), a number, a matrix, a function of x, or a `Metric`."""
    if given is None:
        return Off()
    if isinstance(given, Metric):
        return given
    if callable(given):
        function: Any = given
        return Field(function)
    matrix = np.asarray(given, float)
    if matrix.ndim == 0:
        matrix = matrix * np.eye(dimension)
    if matrix.shape != (dimension, dimension) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"a metric in {dimension} dimensions must be a number, a {dimension} × {dimension} "
            f"matrix or a function of x; this has shape {matrix.shape}"
        )
    return Constant(jnp.asarray(matrix))


def transformed(metric: Metric, x: Array, gradients: Array) -> Array:
    """A(x)∇f for many functions at once: (n, m, d) → (n, m, d)."""
    if isinstance(metric, Off):
        return gradients
    return jax.vmap(lambda v: metric.apply(x, DenseField(v)).dense(), in_axes=1, out_axes=1)(
        gradients
    )


def tensor(metric: Metric, x: Array) -> Array:
    """M(x) = A(x)ᵀA(x), shape (n, d, d)."""
    n, d = x.shape
    columns = transformed(metric, x, jnp.broadcast_to(jnp.eye(d, dtype=x.dtype), (n, d, d)))
    return jnp.einsum("nik,njk->nij", columns, columns)
