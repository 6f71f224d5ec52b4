"""The best metric that all points share, in closed form, from the maps' gradients alone.

Summed over maps, the energy under one matrix M = AᵀA is tr(MG), where G = E Σ_k ∇φ_k∇φ_kᵀ is the
average gradient outer product (AGOP, the feature matrix of recursive feature machines). Its least
value under det M = 1 is at M ∝ G⁻¹, under tr M⁻¹ = d at M ∝ G^(−½) (docs/metrics.md). So nothing is
learned by descent: the metric is set again from the maps of the moment, and the maps descend on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import GradientField
from piefs.core.maps import ScalarMap
from piefs.core.metric import MetricField

BOUND = 3.0
"""log(λ_max/λ_min) where the user sets none: e³ ≈ 20."""

MOST_DIRECTIONS = 64
"""Leading directions that are told apart; the others share their mean. A step is O(d) in each."""


class ClosedForm(MetricField):
    """A = a(I + V diag(γ) Vᵀ), symmetric, with orthonormal columns V: (d, r), γ: (r,), a: ().

    It begins as the identity and is replaced by `refreshed`; descent leaves it as it is.
    """

    follows_maps: ClassVar[bool] = True
    directions: Array
    gains: Array
    base: Array
    constraint: str = eqx.field(static=True, default="trace")
    bound: float = eqx.field(static=True, default=BOUND)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        """Av; a factored gradient stays so."""
        directions, gains, base = jax.lax.stop_gradient((self.directions, self.gains, self.base))
        return v.mapped_by(
            lambda rows: base * (rows + ((rows @ directions) * gains) @ directions.T)
        )

    def log_scales(self, x: Array) -> Array:
        """log a(1 + γ_i), and log a for the directions that are not told apart."""
        rest = jnp.zeros(x.shape[1] - len(self.gains), self.gains.dtype)
        scales = jnp.log(self.base) + jnp.log1p(jnp.concatenate([self.gains, rest]))
        return jnp.broadcast_to(scales, x.shape)

    def refreshed(self, outer_product: Array) -> ClosedForm:
        """The best metric of this form for the average gradient outer product G, (d, d)."""
        values, vectors = np.linalg.eigh(np.asarray(outer_product, np.float64))
        log_scales = best_log_scales(values[::-1], len(self.gains), self.constraint, self.bound)
        r, dtype = len(self.gains), self.gains.dtype
        base = log_scales[r] if r < len(values) else 0.0
        return replace(
            self,
            directions=jnp.asarray(vectors[:, ::-1][:, :r], dtype),
            gains=jnp.asarray(np.expm1(log_scales[:r] - base), dtype),
            base=jnp.asarray(np.exp(base), dtype),
        )


def best_log_scales(
    eigenvalues: np.ndarray, n_directions: int, constraint: str, bound: float
) -> np.ndarray:
    """log λ_i of the best A for eigenvalues g_i of G, the largest first.

    λ_i² ∝ g_i⁻¹ (volume) or g_i^(−½) (trace), with ε added to each g_i, as little as keeps
    log(λ_max/λ_min) ≤ `bound`: G is singular wherever maps are fewer than features. A G of zeros
    gives the identity.
    """
    g = np.maximum(eigenvalues, 0.0)
    g[n_directions:] = g[n_directions:].mean() if n_directions < len(g) else 0.0
    if not g[0] > 0:
        return np.zeros_like(g)
    power = 0.5 if constraint == "volume" else 0.25
    span = np.expm1(min(bound / power, 600.0))  # e^600 is within double precision
    ridge = max(0.0, (g[0] - span * g[-1] - g[-1]) / span)
    z = -power * np.log((g + ridge) / g[0])
    return z - (z.mean() if constraint == "volume" else -0.5 * np.log(np.mean(np.exp(-2 * z))))


def init_closed_form(
    n_features: int, constraint: str, bound: float | None, dtype: Any
) -> ClosedForm:
    """The identity, for as many directions as are told apart."""
    r = min(n_features, MOST_DIRECTIONS)
    return ClosedForm(
        jnp.eye(n_features, r, dtype=dtype),
        jnp.zeros(r, dtype),
        jnp.ones((), dtype),
        constraint,
        BOUND if bound is None else float(bound),
    )


@jax.jit
def outer_product(maps: ScalarMap, x: Array, weights: Array) -> Array:
    """G of a stack of maps over rows whose weights have the sum 1, shape (d, d).

    With ∇φ_k = u W₁ᵀ each term is W₁ E[uᵀu] W₁ᵀ: no (n, d) array is formed.
    """

    def add(total: Array, phi: ScalarMap) -> tuple[Array, None]:
        _, gradient = phi.value_and_gradient(x)
        second_moments = (gradient.u * weights[:, None]).T @ gradient.u
        return total + gradient.frame @ second_moments @ gradient.frame.T, None

    zero = jnp.zeros((x.shape[1], x.shape[1]), x.dtype)
    return jax.lax.scan(add, zero, maps)[0]
