"""What a family of orthogonal maps must provide, and how a member of it is applied."""

from typing import Protocol, runtime_checkable

import numpy as np
from jax import Array

from piefs.core.gradients import Parts, deal, gather


@runtime_checkable
class Rotation(Protocol):
    """A family of orthogonal maps U(ω) of determinant one on ℝᵈ, applied without a d × d matrix."""

    @property
    def stride(self) -> int:
        """Into how many arrays the components of vectors are dealt out; 1 leaves them together."""
        ...

    def n_parameters(self, d: int) -> int:
        """How many parameters the family needs in dimension d."""
        ...

    def split(self, parameters: Array, d: int) -> Parts:
        """Parameters, along the last axis, as the arrays that `apply` takes."""
        ...

    def squash(self, outputs: Parts) -> Parts:
        """A network's outputs, any real numbers, as parameters; zeros give the identity."""
        ...

    def apply(self, parameters: Parts, v: Parts, /) -> Parts:
        """U(ω)v row by row; vectors are dealt out into `stride` arrays. One row of ω serves all."""
        ...


def rotate(family: Rotation, parameters: Array, v: Array) -> Array:
    """U(ω)v for parameters of shape (n, n_parameters), or (1, …), and vectors of shape (n, d)."""
    parts = family.split(parameters, v.shape[1])
    return gather(family.apply(parts, deal(v, family.stride)))


def split_at(parameters: Array, widths: tuple[int, ...]) -> Parts:
    """Consecutive columns, so many to a part."""
    ends = np.cumsum(widths).tolist()
    starts = [0, *ends[:-1]]
    return tuple(parameters[..., a:b] for a, b in zip(starts, ends, strict=True))
