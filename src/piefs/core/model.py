"""A fitted model: scaling, maps, metric and readout. A plain dataclass that needs no JAX itself.

Its methods are pure functions of arrays, of numpy or of JAX, whichever its maps take; under JAX
they are differentiable and can be compiled. Tables of any length go through
`piefs.training.evaluation.evaluate`, which runs the same functions block by block.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Array = Any
"""An array of numpy or of JAX."""


class Readout(NamedTuple):
    """The affine map Φ ↦ B + WΦ (eq:class_log_prob); `weights` is (n_outputs, K).

    Inactive coordinates enter Φ as zeros, which leaves their columns of W without effect.
    """

    weights: Array
    bias: Array

    def __call__(self, phi: Array) -> Array:
        """Logits (or regression outputs), shape (n, n_outputs)."""
        return phi @ self.weights.T + self.bias


@dataclass(frozen=True, eq=False)
class Scaling:
    """z = (x − center)/scale, column by column, in double precision; with a `clip` c smoothly
    bounded to z/√(1 + (z/c)²).
    """

    center: np.ndarray
    scale: np.ndarray
    clip: float | None = field(default=None, metadata={"static": True})

    def __call__(self, x: Array) -> Array:
        """The scaled rows."""
        z = (x - self.center) / self.scale
        return z if self.clip is None else z / (1 + (z / self.clip) ** 2) ** 0.5


@dataclass(frozen=True, eq=False)
class Model:
    """x ↦ Φ(scaling(x)) = M (φ_1, …, φ_K) and the readout on top.

    `maps` have `coordinates(x)`, (n, K), and `coordinates_and_gradients(x)`, the latter (n, K, d).
    `mixing` M is K × K, lower triangular, and I if the trained maps are the coordinates; `readout`
    has no outputs if training had no labels; `units` are those of a regression's targets, and
    `spread` reads the logarithms of its errors' standard deviations off the coordinates.
    """

    scaling: Scaling | None
    maps: Any
    mixing: Array
    metric: Any
    readout: Readout
    units: Scaling | None = None
    spread: Readout | None = None

    @property
    def dtype(self) -> np.dtype:
        """The precision of its maps."""
        return self.mixing.dtype

    def scaled(self, x: Array) -> Array:
        """What the maps see."""
        return x if self.scaling is None else self.scaling(x)

    def of_scaled(self, z: Array) -> Array:
        """Φ, shape (n, K), of rows that have been scaled."""
        return self.maps.coordinates(z) @ self.mixing.T

    def coordinates(self, x: Array) -> Array:
        """Φ(x), shape (n, K)."""
        return self.of_scaled(self.scaled(x))

    def outputs(self, x: Array) -> Array:
        """The readout's logits, or a regression's standardised predictions, (n, n_outputs)."""
        return self.readout(self.coordinates(x))

    def gradients(self, x: Array) -> Array:
        """∇φ_k of the coordinates in the inputs that the maps see, shape (n, K, d)."""
        _, gradients = self.maps.coordinates_and_gradients(self.scaled(x))
        return self.mixing @ gradients
