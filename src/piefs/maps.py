"""The coordinate maps φ_1 … φ_K: scalar networks, their input gradients, and their stack.

Each φ_k is its own small network with its own parameters θ_k (paper, Sec. 2.2). The input gradient
is written out, not differentiated: for hidden layers W₁ … W_L with slopes D_l = σ′ and output
weights w, ∇φ = W₁ D₁ W₂ D₂ … W_L D_L w. A Dirichlet energy then needs only first-order autodiff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from piefs.gradients import GradientField
from piefs.networks import MLP, init_mlp


class ScalarMap(eqx.Module):
    """One coordinate map φ(·; θ): ℝᵈ → ℝ.

    A stack of K maps is the same object with a leading axis K on every array (see `stack`).
    """

    net: MLP

    def __call__(self, x: Array) -> Array:
        """Values φ(x), shape (n,)."""
        return self.net(x)[:, 0]

    def value_and_gradient(self, x: Array) -> tuple[Array, GradientField]:
        """Values φ(x), shape (n,), and ∇φ(x) in the factored form u W₁ᵀ."""
        out, slopes = self.net.with_slopes(x)
        u = slopes[-1] * self.net.weights[-1][:, 0]
        for w, slope in zip(self.net.weights[-2:0:-1], slopes[-2::-1], strict=True):
            u = (u @ w.T) * slope
        return out[:, 0], GradientField(u, self.net.weights[0])


def init_map(
    key: Array,
    n_features: int,
    hidden: Sequence[int] = (64, 64, 64),
    activation: str = "relu",
    dtype: Any = None,
) -> ScalarMap:
    """A fresh random φ on `n_features` inputs."""
    return ScalarMap(init_mlp(key, (n_features, *hidden, 1), activation, dtype))


def stack(maps: Sequence[ScalarMap]) -> ScalarMap:
    """K maps of one shape as a single pytree with a leading axis K."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *maps)


def unstack(maps: ScalarMap) -> list[ScalarMap]:
    """The inverse of `stack`."""
    return [jax.tree.map(lambda a, k=k: a[k], maps) for k in range(n_maps(maps))]


def n_maps(maps: ScalarMap) -> int:
    """How many maps a stack holds."""
    return maps.net.biases[0].shape[0]


def coordinates(maps: ScalarMap, x: Array) -> Array:
    """Φ(x) = (φ_1(x), …, φ_K(x)), shape (n, K), of a stack: one product per layer for all K."""
    return jax.vmap(lambda phi: phi(x), out_axes=1)(maps)


def coordinates_and_gradients(maps: ScalarMap, x: Array) -> tuple[Array, Array]:
    """Φ(x), shape (n, K), and all input gradients, shape (n, K, d)."""

    def one(phi: ScalarMap) -> tuple[Array, Array]:
        value, gradient = phi.value_and_gradient(x)
        return value, gradient.dense()

    return jax.vmap(one, out_axes=1)(maps)
