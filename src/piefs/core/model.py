"""A fitted model: scaling, maps, metric and readout in one pytree of pure functions.

Every method is differentiable and jittable, in the model's own dtype. Tables of any length go
through `piefs.training.columns`, which evaluates the same functions block by block.
"""

import equinox as eqx
from jax import Array

from piefs.core.losses import Readout
from piefs.core.maps import ScalarMap, coordinates
from piefs.core.metric import Metric


class Model(eqx.Module):
    """x ↦ Φ((x − center)/scale) = M (φ_1, …, φ_K) and the readout on top.

    `center` and `scale` have shape (d,); `mixing` M is K × K, lower triangular, and I where the
    trained maps are the coordinates; `readout` has no outputs where training had no labels.
    """

    center: Array
    scale: Array
    maps: ScalarMap
    mixing: Array
    metric: Metric
    readout: Readout

    def standardized(self, x: Array) -> Array:
        """What the maps see."""
        return (x - self.center) / self.scale

    def coordinates(self, x: Array) -> Array:
        """Φ(x), shape (n, K)."""
        return coordinates(self.maps, self.standardized(x)) @ self.mixing.T

    def outputs(self, x: Array) -> Array:
        """The readout's logits, or a regression's standardised predictions, (n, n_outputs)."""
        return self.readout(self.coordinates(x))
