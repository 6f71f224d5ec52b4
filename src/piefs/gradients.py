"""Fields of input gradients, kept factored for as long as possible.

For a network whose first layer is W₁ (d × h) the gradient of its output at each of n points is
∇φ = u W₁ᵀ with u (n × h), the gradient at the first hidden layer. Inner products of two such
fields need only the h × h matrix W₁ᵀW₁ (the "Gram trick"), so at d = 784, h = 64 no 784-vector is
ever formed. A linear map A shared by all points keeps the form: A∇φ = u (A W₁)ᵀ.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array


class GradientField(eqx.Module):
    """n vectors of length d, stored as `u @ frame.T`, or densely as `u` where `frame` is None."""

    u: Array
    frame: Array | None = None

    def dense(self) -> Array:
        """The vectors themselves, shape (n, d)."""
        return self.u if self.frame is None else self.u @ self.frame.T

    def transformed_by(self, matrix: Array) -> GradientField:
        """The field x ↦ M v(x), for one matrix M of shape (d', d) shared by all points."""
        if self.frame is None:
            return GradientField(self.u @ matrix.T)
        return GradientField(self.u, matrix @ self.frame)


def dot(f: GradientField, g: GradientField) -> Array:
    """Pointwise inner products ⟨f(x), g(x)⟩, shape (n,); factored where that is cheaper."""
    if f.frame is None or g.frame is None or f.frame.shape[0] <= f.frame.shape[1]:
        return jnp.sum(f.dense() * g.dense(), axis=-1)
    return jnp.sum((f.u @ (f.frame.T @ g.frame)) * g.u, axis=-1)
