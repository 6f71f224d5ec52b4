"""Where an operator lives: a region with points to integrate over, drawn or chosen.

A domain carries a reference measure q. `sobol` draws quasi-random points from it, `quadrature` is
a rule for it where one is known; weights of points sum to one. `density` is q up to a constant, by
which a problem divides when its own measure is another one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import ndtri
from scipy.stats import qmc

from piefs.errors import InputError

Function = Callable[[Array], Array]
Corner = Sequence[float] | np.ndarray

FEWEST = 6
"""A product rule with fewer nodes a coordinate is no match for quasi-random points."""
RULES = {
    "legendre": (np.polynomial.legendre.leggauss, 200),
    "hermite": (np.polynomial.hermite_e.hermegauss, 120),
}
"""Gauss's rules, and how many nodes a coordinate are the most that gain (weights underflow)."""


class Points(NamedTuple):
    """Points x (n, d) with weights (n,): E_q[f] ≈ Σ w_i f(x_i)."""

    x: np.ndarray
    weight: np.ndarray


def equally_weighted(x: np.ndarray) -> Points:
    return Points(x, np.full(len(x), 1 / len(x)))


class Domain(ABC):
    """A region of ℝᵈ (or a surface in it) with its reference measure q."""

    dimension: int
    """The number d of coordinates of a point."""
    n_uniform: int
    """How many uniform numbers make one point."""
    reach: Any
    """Half of each side of the box of `bounds`, if that is around the origin."""

    def sobol(self, seed: int) -> Callable[[int], Points]:
        """A stream of quasi-random points: each call continues where the last one ended."""
        engine = qmc.Sobol(self.n_uniform, scramble=True, rng=np.random.default_rng(seed))

        def draw(n: int) -> Points:
            u = engine.random(2 ** (n - 1).bit_length())[:n]  # balanced in powers of two only
            # A Sobol point may be 0 exactly, which distributions on ℝ send to infinity.
            return equally_weighted(self.from_uniform(np.clip(u, 2.0**-33, 1 - 2.0**-33)))

        return draw

    @abstractmethod
    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        """Points of q from points u of the unit cube."""

    def quadrature(self, n_points: int) -> Points | None:
        """A rule with at most about `n_points` points; None where none is known."""
        return None

    def density(self, x: Array) -> Array:
        """q(x) up to a constant, (n,)."""
        return jnp.ones(x.shape[0], x.dtype)

    def distance(self, x: Array) -> Array:
        """Positive inside, zero on the boundary, smooth; (n,)."""
        raise InputError(f"a {type(self).__name__} has no boundary to put a condition on")

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The corners of a box in which the pictures are drawn, and by which inputs are scaled."""
        corner = np.full(self.dimension, 1.0) * self.reach
        return -corner, corner


class Box(Domain):
    """The box ∏ [low_i, high_i] with the uniform measure."""

    def __init__(self, low: Corner, high: Corner):
        self.low, self.high = np.asarray(low, float), np.asarray(high, float)
        if self.low.ndim != 1 or self.low.shape != self.high.shape or not len(self.low):
            raise InputError("a box needs two lists of corners of one length")
        if not np.all(self.low < self.high) or not np.all(np.isfinite(self.high - self.low)):
            raise InputError("each lower corner of a box must lie below its upper corner")
        self.dimension = self.n_uniform = len(self.low)

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        return self.low + u * (self.high - self.low)

    def quadrature(self, n_points: int) -> Points | None:
        """Gauss–Legendre in each coordinate."""
        rule = tensor_rule("legendre", n_points, self.dimension)
        return None if rule is None else Points(self.from_uniform((rule.x + 1) / 2), rule.weight)

    def distance(self, x: Array) -> Array:
        """∏ 4 t(1 − t) with t the place between the faces: 1 in the middle, 0 on each face."""
        t = (x - self.low) / (self.high - self.low)
        return jnp.prod(4 * t * (1 - t), axis=-1)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.low, self.high


class Ellipsoid(Domain):
    """The image {Ly : |y| < 1} of the unit ball under `frame` L, with the uniform measure."""

    def __init__(self, frame: Sequence[Sequence[float]] | np.ndarray):
        self.frame = np.asarray(frame, float)
        is_square = self.frame.ndim == 2 and self.frame.shape[0] == self.frame.shape[1]
        if not is_square or not np.linalg.cond(self.frame) < 1e12:
            raise InputError("the frame of an ellipsoid must be a square matrix, and invertible")
        self.dimension, self.n_uniform = len(self.frame), len(self.frame) + 1
        self.reach = np.linalg.norm(self.frame, axis=1)

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        radius = u[:, -1:] ** (1 / self.dimension)
        return radius * _directions(u[:, :-1]) @ self.frame.T

    def quadrature(self, n_points: int) -> Points | None:
        """In the plane: Gauss–Legendre in r², equal angles."""
        if self.dimension != 2:
            return None
        n_radii = max(2, int((n_points / 4) ** 0.5))
        nodes, weight = np.polynomial.legendre.leggauss(n_radii)
        y, weight = _polar(((nodes + 1) / 2) ** 0.5, weight / 2, 4 * n_radii)
        return Points(y @ self.frame.T, weight)

    def distance(self, x: Array) -> Array:
        return 1 - jnp.sum((x @ np.linalg.inv(self.frame).T) ** 2, axis=-1)


class Ball(Ellipsoid):
    """The ball of a radius around the origin; in the plane, a disk."""

    def __init__(self, dimension: int = 2, radius: float = 1.0):
        if dimension < 1 or not radius > 0:
            raise InputError("a ball needs a dimension of at least 1 and a positive radius")
        super().__init__(radius * np.eye(dimension))


class Sphere(Domain):
    """The unit sphere S^{d−1} in ℝᵈ with its uniform measure; a metric must project on it."""

    reach = 1.0

    def __init__(self, dimension: int = 3):
        if dimension < 2:
            raise InputError("a sphere needs at least 2 coordinates")
        self.dimension = self.n_uniform = dimension

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        return _directions(u)

    def quadrature(self, n_points: int) -> Points | None:
        """On S²: Gauss–Legendre in the height, equal longitudes."""
        if self.dimension != 3:
            return None
        n_heights = max(2, int((n_points / 2) ** 0.5))
        heights, weight = np.polynomial.legendre.leggauss(n_heights)
        xy, weights = _polar((1 - heights**2) ** 0.5, weight / 2, 2 * n_heights)
        return Points(np.column_stack([xy, np.repeat(heights, 2 * n_heights)]), weights)


class Gaussian(Domain):
    """All of ℝᵈ with the measure N(0, scale² I)."""

    def __init__(self, dimension: int, scale: float = 1.0):
        if dimension < 1 or not scale > 0:
            raise InputError("a Gaussian needs a dimension of at least 1 and a positive scale")
        self.dimension = self.n_uniform = dimension
        self.scale, self.reach = float(scale), 3 * scale

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        return self.scale * ndtri(u)

    def quadrature(self, n_points: int) -> Points | None:
        """Gauss–Hermite in each coordinate."""
        rule = tensor_rule("hermite", n_points, self.dimension)
        return None if rule is None else Points(self.scale * rule.x, rule.weight)

    def density(self, x: Array) -> Array:
        return jnp.exp(-jnp.sum(x**2, axis=-1) / (2 * self.scale**2))


class Radial(Domain):
    """All of ℝᵈ, radii exponential with mean `scale`: q ∝ r^{1−d} exp(−r/scale).

    Points crowd at the origin as 1/r potentials want it: there q's r^{1−d} outweighs the 1/r.
    """

    def __init__(self, dimension: int = 2, scale: float = 1.0):
        if dimension < 2 or not scale > 0:
            raise InputError("a radial domain needs at least 2 dimensions and a positive scale")
        self.dimension, self.n_uniform = dimension, dimension + 1
        self.scale, self.reach = float(scale), 3 * scale

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        radius = -self.scale * np.log1p(-u[:, -1:])
        return radius * _directions(u[:, :-1])

    def quadrature(self, n_points: int) -> Points | None:
        """In the plane: Gauss–Legendre in t with r = scale · 4t²/(1 − t), equal angles.

        Radii are dense at the origin and smooth at infinity, whatever the scales of the functions.
        """
        if self.dimension != 2:
            return None
        n_radii = max(2, int(n_points**0.5))
        nodes, weight = np.polynomial.legendre.leggauss(n_radii)
        t = (nodes + 1) / 2
        r, slope = 4 * t**2 / (1 - t), 4 * t * (2 - t) / (1 - t) ** 2
        near = r < 60  # beyond, the measure is gone
        r, weight = r[near], (weight / 2 * slope * np.exp(-r))[near]
        return Points(*_polar(self.scale * r, weight / weight.sum(), max(8, n_points // n_radii)))

    def density(self, x: Array) -> Array:
        r = jnp.linalg.norm(x, axis=-1)
        return r ** (1 - self.dimension) * jnp.exp(-r / self.scale)


def _directions(u: np.ndarray) -> np.ndarray:
    z = ndtri(u)
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def _polar(radius: np.ndarray, weight: np.ndarray, n_angles: int) -> tuple[np.ndarray, np.ndarray]:
    """The points of all radii at equal angles, radius by radius, and their weights."""
    # Starting between two axes keeps symmetric functions from meeting the same points twice.
    angle = 2 * np.pi * (np.arange(n_angles) + 0.25) / n_angles
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    x = (radius[:, None, None] * circle).reshape(-1, 2)
    return x, np.repeat(weight, n_angles) / n_angles


def tensor_rule(family: str, n_points: int, dimension: int) -> Points | None:
    """A product of Gauss's rules with at most `n_points` points; None if that is too few.

    `legendre` integrates over [−1, 1]ᵈ with the uniform measure, `hermite` over ℝᵈ with N(0, I).
    """
    rule, most = RULES[family]
    order = min(int(round(n_points ** (1 / dimension), 9)), most)
    if order < FEWEST:
        return None
    nodes, weight = rule(order)
    grids = (np.meshgrid(*[one] * dimension, indexing="ij") for one in (nodes, weight))
    x, weights = (np.stack(grid, axis=-1).reshape(-1, dimension) for grid in grids)
    return Points(x, np.prod(weights / weight.sum(), axis=1))
