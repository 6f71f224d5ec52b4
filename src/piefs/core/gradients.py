"""Fields of input gradients, kept factored for as long as possible.

For a network whose first layer is W₁ (d × h) the gradient of its output at each of n points is
∇φ = u W₁ᵀ with u (n × h), the gradient at the first hidden layer. Inner products of two such
fields need only the h × h matrix W₁ᵀW₁ (the "Gram trick"): no d-vector is ever formed. A linear map
A shared by all points keeps the form: A∇φ = u (A W₁)ᵀ.

Where vectors must be formed, they may be *dealt out* into s arrays: the components i, i + s,
i + 2s, … for i = 0 … s − 1. Rotations of neighbouring components are then arithmetic on whole
contiguous arrays (see `rotations`), and dealing out the frame's rows costs next to nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

if TYPE_CHECKING:
    from piefs.core.metric import MetricField

Parts = tuple[Array, ...]


def deal(a: Array, stride: int) -> Parts:
    """The columns i, i + s, i + 2s, … of `a` for i = 0 … s − 1."""
    return tuple(a[..., i::stride] for i in range(stride))


def gather(parts: Parts) -> Array:
    """The inverse of `deal`."""
    if len(parts) == 1:
        return parts[0]
    stride, width = len(parts), sum(part.shape[-1] for part in parts)
    out = jnp.zeros((*parts[0].shape[:-1], width), parts[0].dtype)
    for i, part in enumerate(parts):
        out = out.at[..., i::stride].set(part)
    return out


class GradientField(eqx.Module):
    """One vector of length d at each of n points."""

    @abstractmethod
    def parts(self, stride: int) -> Parts:
        """The components dealt out into `stride` arrays of shape (n, ≈ d/stride)."""

    @abstractmethod
    def mapped_by(self, linear: Callable[[Array], Array]) -> GradientField:
        """The field x ↦ L v(x), for a linear L shared by all points, a function of rows."""

    @property
    def stride(self) -> int:
        """How the components are dealt out where it costs nothing."""
        return 1

    def dense(self) -> Array:
        """The vectors themselves, shape (n, d)."""
        return gather(self.parts(self.stride))


class FactoredField(GradientField):
    """The vectors u W₁ᵀ, with `u` of shape (n, h) and the `frame` W₁ of shape (d, h)."""

    u: Array
    frame: Array

    def parts(self, stride: int) -> Parts:
        """One product for each part: strided rows of the small frame, never of the vectors."""
        return tuple(self.u @ self.frame[i::stride].T for i in range(stride))

    def mapped_by(self, linear: Callable[[Array], Array]) -> FactoredField:
        return FactoredField(self.u, linear(self.frame.T).T)


class DenseField(GradientField):
    """The vectors themselves, dealt out into one or more arrays."""

    dealt: Parts

    def __init__(self, *dealt: Array) -> None:
        self.dealt = dealt

    @property
    def stride(self) -> int:
        return len(self.dealt)

    def parts(self, stride: int) -> Parts:
        return self.dealt if stride == self.stride else deal(gather(self.dealt), stride)

    def mapped_by(self, linear: Callable[[Array], Array]) -> DenseField:
        return DenseField(linear(self.dense()))


def dot(f: GradientField, g: GradientField) -> Array:
    """Pointwise inner products ⟨f(x), g(x)⟩, shape (n,); factored where that is cheaper."""
    if isinstance(f, FactoredField) and isinstance(g, FactoredField):
        n_features, width = f.frame.shape
        if n_features > width:
            return jnp.sum((f.u @ (f.frame.T @ g.frame)) * g.u, axis=-1)
    stride = max(f.stride, g.stride)
    pairs = zip(f.parts(stride), g.parts(stride), strict=True)
    return sum((jnp.sum(a * b, axis=-1) for a, b in pairs), start=jnp.zeros(()))


# --- Dirichlet energies ------------------------------------------------------------------------

# A metric with a rotation makes a dozen (B, d) arrays; at B = 2048, d = 784 each is 6 MB, and
# moving them through memory takes longer than the arithmetic. The energy is a sum over rows: it and
# its derivatives are summed in blocks that fit a core's cache; nothing of size (B, d) is kept.


def energy_sum(metric: MetricField, x: Array, f: FactoredField, weight: Array) -> Array:
    """Σ w ‖A∇f‖² over rows (eq:dirichlet_energy), in blocks if the metric asks for them.

    Differentiable in the metric and in f; the rows x and their weights are data.
    """
    rows = block_length(x.shape[0], metric.block_rows)
    if rows is None:
        return _of_rows(metric, x, f, weight)
    return _in_blocks(rows, metric, x, f, weight)


def _of_rows(metric: MetricField, x: Array, f: FactoredField, weight: Array) -> Array:
    transformed = metric.apply(x, f)
    return weight @ dot(transformed, transformed)


def block_length(n: int, wanted: int | None) -> int | None:
    """The largest block of at most `wanted` rows that divides n; None if n should stay whole.

    A batch size with no divisor between a quarter of `wanted` and `wanted` is not cut.
    """
    if wanted is None or n <= wanted:
        return None
    return next((rows for rows in range(wanted, wanted // 4, -1) if n % rows == 0), None)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _in_blocks(rows: int, metric: MetricField, x: Array, f: FactoredField, weight: Array) -> Array:
    return _of_rows(metric, x, f, weight)


def _forward(
    rows: int, metric: MetricField, x: Array, f: FactoredField, weight: Array
) -> tuple[Array, tuple]:
    """One pass over the blocks gives the energy and all its derivatives."""

    def block(total: tuple, inputs: tuple) -> tuple:
        x, u, weight = inputs

        def energy(metric: MetricField, u: Array, frame: Array) -> Array:
            return _of_rows(metric, x, FactoredField(u, frame), weight)

        derivative = jax.value_and_grad(energy, argnums=(0, 1, 2))
        value, (d_metric, d_u, d_frame) = derivative(metric, u, f.frame)
        return jax.tree.map(jnp.add, total, (value, d_metric, d_frame)), d_u

    blocks = jax.tree.map(lambda a: a.reshape(-1, rows, *a.shape[1:]), (x, f.u, weight))
    zeros = jax.tree.map(jnp.zeros_like, (weight[0], metric, f.frame))
    (total, d_metric, d_frame), d_u = jax.lax.scan(block, zeros, blocks)
    derivatives = (d_metric, FactoredField(d_u.reshape(f.u.shape), d_frame))
    return total, (derivatives, x, weight)


def _backward(rows: int, saved: tuple, sensitivity: Array) -> tuple:
    derivatives, x, weight = saved
    d_metric, d_field = jax.tree.map(lambda a: sensitivity * a, derivatives)
    return d_metric, jnp.zeros_like(x), d_field, jnp.zeros_like(weight)


_in_blocks.defvjp(_forward, _backward)
