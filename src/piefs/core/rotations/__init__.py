"""Orthogonal factors U(x) of the metric: families of maps of determinant one.

A family turns parameters ω(x) into a rotation and applies it to vectors. A new one is a class with
the members of `Rotation`, registered in `ROTATIONS` or passed as an object. All but `dense` never
form a d × d matrix.
"""

from piefs.core.rotations.dense import Dense
from piefs.core.rotations.givens import Brickwall, Butterfly, Chain, Trotter, cos_sin, rotate_pair
from piefs.core.rotations.lowrank import Cayley, Exponential, Householder
from piefs.core.rotations.protocol import Rotation, rotate

ROTATIONS: dict[str, Rotation] = {
    "trotter": Trotter(),
    "chain": Chain(),
    "brickwall": Brickwall(),
    "butterfly": Butterfly(),
    "householder": Householder(),
    "cayley": Cayley(),
    "exponential": Exponential(),
    "dense": Dense(),
}

DEEP = {
    "brickwall": Brickwall,
    "butterfly": Butterfly,
    "householder": Householder,
    "cayley": Cayley,
    "exponential": Exponential,
}
"""The families that come in sizes: sweeps, repetitions, reflections (an even number), ranks."""


def make_rotation(name: str, depth: int | None = None) -> Rotation:
    """The family of that name, in its own size or in the one asked for."""
    return ROTATIONS[name] if depth is None else DEEP[name](depth=depth)


__all__ = [
    "DEEP",
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
