"""The weights of the three losses, refreshed at every step (paper, Sec. 2.3).

A weighting is a callable `(gram_error, class_loss) -> LossWeights`; the weights are constants in
the differentiation (eq:loss_function). With δ the dampening and g = ‖Ĉ_k − I_k‖²_F:

    w_orth = 1,   w_class = δ(g / T_orth),   w_mde = δ(max(g / T_orth, L_class / T_class)).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = Any
"""An array of numpy or of JAX; functions use the module of their argument."""


class LossWeights(NamedTuple):
    """w_orth, w_class and w_mde."""

    orth: Array | float
    class_: Array | float
    mde: Array | float


Weighting = Callable[["Array", "Array"], LossWeights]


def _module(a: Any) -> Any:
    """The array module of a: numpy, or jax.numpy."""
    return a.__array_namespace__() if hasattr(a, "__array_namespace__") else np


DAMPENINGS: dict[str, Callable[[Array], Array]] = {
    "exponential": lambda r: _module(r).exp(-r),  # the paper's choice (eq:loss_function_weight)
    "rational": lambda r: 1 / (1 + r),  # at T = 1 it is the literal 1/(1 + g) of the paper
    "polynomial": lambda r: _module(r).maximum(1 - r, 0) ** 2,  # our reading of the word
}


@dataclass(frozen=True)
class Dampened:
    """Orthogonality first, then the classes, then smoothness (eq:loss_function_weight).

    `gram` says whose Gram error it is: the "batch"'s own (the paper), or an unbiased estimate of
    the "population"'s; left out, it is the preset's.
    """

    dampening: str = "exponential"
    t_orth: float = 0.1
    t_class: Any = 0.5  # or "calibrated", by a probe of the graph's eigenmaps
    normalize: bool = False
    gram: str | None = None

    def __call__(self, gram_error: Array, class_loss: Array) -> LossWeights:
        """The weights at the current losses; with `normalize` they sum to one."""
        delta = DAMPENINGS[self.dampening]
        r_orth, r_class = gram_error / self.t_orth, class_loss / self.t_class
        r_mde = _module(r_orth).maximum(r_orth, r_class)
        weights = LossWeights(1.0, delta(r_orth), delta(r_mde))
        if not self.normalize:
            return weights
        total = sum(weights)
        return LossWeights(*(w / total for w in weights))


@dataclass(frozen=True)
class Static:
    """Constant weights; the unsupervised runs of App. C use (1, 0, 1).

    `orth` left out is 1 for maps trained one by one, and the preset's otherwise; `prefix` weighs
    the readout's loss on the first 1 … K − 1 maps, if they are nested.
    """

    orth: float | None = None
    class_: float = 1.0
    mde: float = 1.0
    prefix: float | None = None
    gram: str | None = None

    def __call__(self, gram_error: Array, class_loss: Array) -> LossWeights:
        """The constants, whatever the losses."""
        return LossWeights(1.0 if self.orth is None else self.orth, self.class_, self.mde)
