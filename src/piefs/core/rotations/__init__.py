"""Orthogonal factors U(x) of the metric: families of maps of determinant one.

A family turns parameters ω(x) into a rotation and applies it to vectors. A new one is a class with
the members of `Rotation`, registered in `FAMILIES` or passed as an object. All but `dense` never
form a d × d matrix.
"""

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


# Families are defined in terms of what is above.
from piefs.core.rotations.givens import (  # noqa: E402
    Brickwall,
    Butterfly,
    Chain,
    Trotter,
    cos_sin,
    rotate_pair,
)
from piefs.core.rotations.lowrank import Cayley, Dense, Exponential, Householder  # noqa: E402

FAMILIES: dict[str, type] = {
    "trotter": Trotter,
    "chain": Chain,
    "brickwall": Brickwall,
    "butterfly": Butterfly,
    "householder": Householder,
    "cayley": Cayley,
    "exponential": Exponential,
    "dense": Dense,
}
ROTATIONS: dict[str, Rotation] = {name: family() for name, family in FAMILIES.items()}


def make_rotation(name: str, depth: int | None = None) -> Rotation:
    """The family of that name, in its own size or in the one asked for."""
    return ROTATIONS[name] if depth is None else FAMILIES[name](depth=depth)


__all__ = [
    "FAMILIES",
    "ROTATIONS",
    "Brickwall",
    "Butterfly",
    "Cayley",
    "Chain",
    "Dense",
    "Exponential",
    "Householder",
    "Rotation",
    "Trotter",
    "cos_sin",
    "make_rotation",
    "rotate",
    "rotate_pair",
]
