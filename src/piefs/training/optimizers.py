"""The optimisers: a direction, a rate that rises and falls, and decay of the weights."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

DIRECTIONS: dict[str, optax.GradientTransformation] = {
    "adam": optax.scale_by_adam(),
    "sgd": optax.trace(decay=0.9),
}


@dataclass(frozen=True)
class Optimizer:
    """Adam or momentum; the rate climbs over a share `warmup` of the steps, then falls."""

    direction: str = "adam"
    warmup: float = 0.0

    def init(self, params: Any) -> optax.OptState:
        """Fresh state for these parameters."""
        begun = jax.eval_shape(DIRECTIONS[self.direction].init, params)
        zeros = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), begun)  # both begin at zero
        return jax.device_put(zeros)

    def rate(self, peak: Any, step: Any, total_steps: Any) -> Any:
        """The learning rate of a step, counted from 0."""
        warm = self.warmup * total_steps
        falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - warm) / (total_steps - warm)))
        if not self.warmup:
            return peak * falling
        rising = (step + 1) / jnp.maximum(warm, 1)
        return peak * jnp.where(step + 1 < warm, rising, falling)

    def update(
        self,
        params: Any,
        grads: Any,
        state: optax.OptState,
        rate: ArrayLike,
        weight_decay: ArrayLike = 0.0,
    ) -> tuple[Any, optax.OptState]:
        """Parameters and state after a step.

        The decay is decoupled (AdamW): weight matrices shrink by rate × weight_decay a step, biases
        do not.
        """
        updates, state = DIRECTIONS[self.direction].update(grads, state, params)

        def moved(path: tuple, param: Array, update: Array) -> Array:
            if any(getattr(key, "name", None) == "weights" for key in path):
                update = update + weight_decay * param
            return (param - rate * update).astype(param.dtype)

        return jax.tree_util.tree_map_with_path(moved, params, updates), state
