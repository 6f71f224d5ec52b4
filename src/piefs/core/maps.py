"""The coordinate maps φ_1 … φ_K: scalar networks, their input gradients, and their stack.

Each φ_k is its own small network with its own parameters θ_k (paper, Sec. 2.2). The input gradient
is written out, not differentiated: for hidden layers W₁ … W_L with slopes D_l = σ′ and output
weights w, ∇φ = W₁ D₁ W₂ D₂ … W_L D_L w. A Dirichlet energy then needs only first-order autodiff.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from piefs.core.gradients import FactoredField
from piefs.core.model import Model, Scaling
from piefs.core.networks import ACTIVATIONS, MLP, init_mlp, weight_gradient


class ScalarMap(eqx.Module):
    """One coordinate map φ(·; θ): ℝᵈ → ℝ.

    A stack of K maps is the same object with a leading axis K on every array (see `stack`).
    """

    net: MLP

    def __call__(self, x: Array) -> Array:
        """Values φ(x), shape (n,)."""
        return self.net(x)[:, 0]

    def coordinates(self, x: Array) -> Array:
        """Φ(x) = (φ_1(x), …, φ_K(x)), shape (n, K), of a stack.

        One map after the other: a map's layers stay in the cache, which on a CPU is more than twice
        as fast as one batched product per layer for all K.
        """
        return jax.lax.map(lambda phi: phi(x), self).T

    def coordinates_and_gradients(self, x: Array) -> tuple[Array, Array]:
        """Φ(x), shape (n, K), and all input gradients, shape (n, K, d), of a stack."""

        def one(phi: ScalarMap) -> tuple[Array, Array]:
            value, gradient = phi.value_and_gradient(x)
            return value, gradient.dense()

        return jax.vmap(one, out_axes=1)(self)

    def value_and_gradient(self, x: Array) -> tuple[Array, FactoredField]:
        """Values φ(x), shape (n,), and ∇φ(x) in the factored form u W₁ᵀ."""
        is_flat = ACTIVATIONS[self.net.activation].is_flat
        value, u = (_flat_value_and_slope if is_flat else _value_and_slope)(self.net, x)
        return value, FactoredField(u, self.net.weights[0])


def _value_and_slope(net: MLP, x: Array) -> tuple[Array, Array]:
    """φ(x), shape (n,), and its gradient u at the first hidden layer's input, shape (n, h)."""
    value, slopes, _ = _sensitivities(net, x)
    return value, slopes[0]


def _sensitivities(net: MLP, x: Array) -> tuple[Array, list[Array], list[Array]]:
    """φ(x), the gradients u_l = ∂φ/∂z_l at each hidden layer's input z_l, and the layers' values.

    With the slopes D_l = σ′(z_l): u_L = D_L w and u_l = D_l W_{l+1} u_{l+1}.
    """
    sigma, slope, _ = ACTIVATIONS[net.activation]
    *hidden, (w_out, b_out) = zip(net.weights, net.biases, strict=True)
    values, slopes = [], []
    for w, b in hidden:
        z = x @ w + b
        x = sigma(z)
        values.append(x)
        slopes.append(slope(z))
    u = [slopes[-1] * w_out[:, 0]]
    for w, slope_l in zip(net.weights[-2:0:-1], slopes[-2::-1], strict=True):
        u.insert(0, (u[0] @ w.T) * slope_l)
    return (x @ w_out + b_out)[:, 0], u, values


def _forward(net: MLP, x: Array) -> tuple[tuple[Array, Array], tuple]:
    value, u, values = _sensitivities(net, x)
    return (value, u[0]), (net, x, u, values)


def _backward(saved: tuple, sensitivity: tuple[Array, Array]) -> tuple[MLP, Array]:
    """The derivative of `_value_and_slope` if σ″ = 0: 8 matrix products, where autodiff takes 12.

    With g and ρ the sensitivities of a loss to φ and to u, the loss changes with W_{l+1} through φ
    by g h_lᵀu_{l+1} and through u by (D_l ρ_l)ᵀu_{l+1}, where ρ_{l+1} = D_l ρ_l W_{l+1}: both are
    products with the u_{l+1} at hand, hence one product for their sum, and no backward pass for φ.
    """
    (net, x, u, values), (g, rho) = saved, sensitivity
    g = g[:, None]
    slope = ACTIVATIONS[net.activation].derivative
    weights, biases = [weight_gradient(x, g * u[0])], [jnp.sum(g * u[0], axis=0)]
    for w, value, u_next in zip(net.weights[1:-1], values, u[1:], strict=False):
        rho = slope(value) * rho
        weights.append((g * value + rho).T @ u_next)
        biases.append(jnp.sum(g * u_next, axis=0))
        rho = rho @ w
    rho = slope(values[-1]) * rho
    weights.append(jnp.sum(g * values[-1] + rho, axis=0)[:, None])
    biases.append(jnp.sum(g, axis=0))
    return MLP(tuple(weights), tuple(biases), net.activation), g * (u[0] @ net.weights[0].T)


_flat_value_and_slope = jax.custom_vjp(_value_and_slope)
_flat_value_and_slope.defvjp(_forward, _backward)


def init_map(
    random: np.random.Generator,
    n_features: int,
    hidden: Sequence[int] = (64, 64, 64),
    activation: str = "relu",
    dtype: Any = None,
) -> ScalarMap:
    """A fresh random φ on `n_features` inputs."""
    return ScalarMap(init_mlp(random, (n_features, *hidden, 1), activation, dtype))


def _module(*arrays: Any) -> Any:
    """Numpy, which compiles nothing; or jax.numpy if one of the arrays is being traced."""
    return jnp if any(isinstance(array, Tracer) for array in arrays) else np


def stack(maps: Sequence[ScalarMap]) -> ScalarMap:
    """K maps of one shape as a single pytree with a leading axis K."""
    return jax.tree.map(lambda *leaves: _module(*leaves).stack(leaves), *maps)


def unstack(maps: ScalarMap) -> list[ScalarMap]:
    """The inverse of `stack`."""
    maps = jax.tree.map(lambda a: _module(a).asarray(a), maps)
    return [jax.tree.map(lambda a, k=k: a[k], maps) for k in range(n_maps(maps))]


def n_maps(maps: ScalarMap) -> int:
    """How many maps a stack holds."""
    return maps.net.biases[0].shape[0]


def is_single(phi: ScalarMap) -> bool:
    """Whether this is one map and not a stack of them."""
    return phi.net.biases[0].ndim == 1


# Models of networks can be given to compiled functions.
jax.tree_util.register_dataclass(Scaling, ["center", "scale"], ["clip"])
jax.tree_util.register_dataclass(
    Model, ["scaling", "maps", "mixing", "metric", "readout", "units", "spread"], []
)
