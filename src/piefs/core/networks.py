"""Fully connected networks: the one building block of the maps φ_k, of Λ(x) and of U(x).

A network is a plain pytree of weight matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import Parts


class Activation(NamedTuple):
    """A scalar nonlinearity σ and its derivative σ′, both applied entrywise.

    `is_flat` says that σ″ = 0 wherever it exists, as for a ReLU.
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    is_flat: bool = False


def _gelu_derivative(z: Array) -> Array:
    return jax.scipy.stats.norm.cdf(z) + z * jax.scipy.stats.norm.pdf(z)


def _silu_derivative(z: Array) -> Array:
    gate = jax.nn.sigmoid(z)
    return gate * (1 + z * (1 - gate))


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(jax.nn.relu, lambda z: (z > 0).astype(z.dtype), is_flat=True),
    "tanh": Activation(jnp.tanh, lambda z: 1 - jnp.tanh(z) ** 2),
    "softplus": Activation(jax.nn.softplus, jax.nn.sigmoid),
    "gelu": Activation(lambda z: jax.nn.gelu(z, approximate=False), _gelu_derivative),
    "silu": Activation(jax.nn.silu, _silu_derivative),
    "sin": Activation(jnp.sin, jnp.cos),
}


MANY_ROWS = 512  # from here on a flipped product pays


def weight_gradient(x: Array, g: Array) -> Array:
    """xᵀg, the gradient of a loss in W where z = xW and g is its gradient in z.

    For a wide x and a narrow g it is cheaper to form gᵀx, whose left factor has contiguous rows,
    and to turn the result over; the barrier keeps XLA from undoing that.
    """
    if x.shape[0] < MANY_ROWS or x.shape[1] <= g.shape[1]:
        return x.T @ g
    return jax.lax.optimization_barrier(g.T @ x).T


@jax.custom_vjp
def product(x: Array, w: Array) -> Array:
    """xW, whose derivative in W is `weight_gradient`."""
    return x @ w


product.defvjp(
    lambda x, w: (x @ w, (x, w)), lambda saved, g: (g @ saved[1].T, weight_gradient(saved[0], g))
)


class MLP(eqx.Module):
    """x ↦ σ(…σ(xW₁ + b₁)…)W_L + b_L, with `weights[l]` of shape (fan_in, fan_out)."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"unknown activation {self.activation!r}")

    def __call__(self, x: Array) -> Array:
        """Outputs, shape (n, out), for inputs of shape (n, in)."""
        return self.hidden(x) @ self.weights[-1] + self.biases[-1]

    def in_parts(self, x: Array, split: Callable[[Array], Parts]) -> Parts:
        """The outputs as `split` splits them along their axis, one product for each part.

        Made for training: differentiable backwards only.
        """
        x = self.hidden(x, product)
        columns = zip(split(self.weights[-1]), split(self.biases[-1]), strict=True)
        return tuple(x @ w + b for w, b in columns)

    def hidden(self, x: Array, multiply: Callable[[Array, Array], Array] = jnp.matmul) -> Array:
        """The values of the last hidden layer."""
        sigma = ACTIVATIONS[self.activation].value
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = sigma(multiply(x, w) + b)
        return x

    def with_centred_outputs(self) -> MLP:
        """The network whose outputs are these less their mean over the outputs, at every x."""
        (*weights, w), (*biases, b) = self.weights, self.biases
        w, b = w - jnp.mean(w, axis=1, keepdims=True), b - jnp.mean(b)
        return MLP((*weights, w), (*biases, b), self.activation)


def generator(seed: int, stream: int = 0) -> np.random.Generator:
    """Random numbers of a seed's stream: Philox, so that no stream shares numbers with another."""
    key = np.array([seed % 2**64, stream], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def init_mlp(
    random: np.random.Generator,
    sizes: Sequence[int],
    activation: str = "relu",
    dtype: Any = None,
    *,
    output_scale: float = 1.0,
) -> MLP:
    """A random network with layer widths `sizes` = (in, hidden…, out).

    Weights are uniform with variance g²/fan_in, g² = 2 behind a ReLU (He) and 1 elsewhere; biases
    are uniform on ±1/√fan_in, so that not every ReLU kink passes through the origin.
    `output_scale` multiplies the last layer: at 0 the network starts as the constant 0.
    """

    def uniform(bound: float, *shape: int) -> Array:  # by numpy: JAX compiles for every new shape
        return jnp.asarray(random.uniform(-bound, bound, shape), dtype or float)

    weights, biases = [], []
    for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        is_output = layer == len(sizes) - 2
        variance = 2.0 if activation == "relu" and not is_output else 1.0
        scale = output_scale if is_output else 1.0
        w_bound, b_bound = scale * (3 * variance / fan_in) ** 0.5, scale * fan_in**-0.5
        weights.append(uniform(w_bound, fan_in, fan_out))
        biases.append(uniform(b_bound, fan_out))
    return MLP(tuple(weights), tuple(biases), activation)
