"""Domains that a user brings along: a region by its distance function, or a cloud of points."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import betaincinv

from piefs.errors import InputError
from piefs.operators.domains import Box, Corner, Domain, Function, Points, equally_weighted


class Implicit(Box):
    """The region {x : distance(x) > 0} within a box, with the uniform measure.

    Any smooth function that vanishes on the boundary with a slope is a distance.
    """

    def __init__(self, distance: Function, low: Corner, high: Corner):
        super().__init__(low, high)
        self._distance = distance
        self.share = np.mean(self._inside(super().sobol(0)(1024).x))
        if self.share < 0.01:
            raise InputError(
                f"the distance is positive on {self.share:.1%} of the box: give a box that fits "
                "the region, and a distance that is positive inside"
            )

    def _inside(self, x: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            distance = np.asarray(self._distance(jnp.asarray(x)))
        if distance.shape != x.shape[:1]:
            raise InputError(
                f"distance(x) must have one value a row, shape {x.shape[:1]}, not {distance.shape}"
            )
        return distance > 0

    def sobol(self, seed: int) -> Callable[[int], Points]:
        """Those of the box's points that are inside."""
        of_box = super().sobol(seed)

        def draw(n: int) -> Points:
            found = np.empty((0, self.dimension))
            while len(found) < n:
                x = of_box(2 ** int(np.ceil(np.log2(1.1 * n / self.share)))).x
                found = np.concatenate([found, x[self._inside(x)]])
            return equally_weighted(found[:n])

        return draw

    def quadrature(self, n_points: int) -> Points | None:
        """None: that of the box would end at no boundary."""
        return None

    def distance(self, x: Array) -> Array:
        return self._distance(x)


class BumpBox(Box):
    """A box with the measure d², d = ∏ 4t(1 − t) the distance of `Box`: all mass in the middle.

    In many dimensions uniform points hardly ever meet a function that vanishes on the boundary.
    Written as φ = d f with points of d², the problem of φ is that of f with natural boundaries and
    one more term in the potential: ∫|∇φ|² = ∫(|∇f|² + U f²) d² dx, U = −Δd/d (`bump_potential`).
    """

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        return super().from_uniform(betaincinv(3.0, 3.0, u))

    def quadrature(self, n_points: int) -> Points | None:
        """Only random points: the potential has poles on the faces."""
        return None

    def density(self, x: Array) -> Array:
        return super().distance(x) ** 2

    def distance(self, x: Array) -> Array:
        raise InputError("a BumpBox has its boundary condition in its measure")

    def bump_potential(self, x: Array) -> Array:
        """U = −Δd/d = Σ 2/(L² t(1 − t)) for sides L."""
        length = self.high - self.low
        t = (x - self.low) / length
        return jnp.sum(2 / (length**2 * t * (1 - t)), axis=-1)


class PointCloud(Domain):
    """A sample as a domain: integrals are (weighted) means over its rows.

    With natural boundary conditions its operator is the weighted Laplacian −(1/p) div(p∇·) of the
    density p that the sample was drawn from, which need not be known.
    """

    n_uniform = 1

    def __init__(self, x: np.ndarray, weight: np.ndarray | None = None):
        self.x = np.asarray(x, float)
        if self.x.ndim != 2 or not len(self.x) or not np.all(np.isfinite(self.x)):
            raise InputError("a point cloud must be a table of finite numbers, shape (n, d)")
        weight = np.ones(len(self.x)) if weight is None else np.asarray(weight, float)
        if weight.shape != (len(self.x),) or not np.all(weight >= 0) or not weight.sum() > 0:
            raise InputError("a point cloud's weights must be one number ≥ 0 for each row")
        self.weight = weight / weight.sum()
        self.dimension = self.x.shape[1]

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        rows = np.searchsorted(np.cumsum(self.weight), u[:, 0] * (1 - 1e-12))
        return self.x[np.minimum(rows, len(self.x) - 1)]

    def sobol(self, seed: int) -> Callable[[int], Points]:
        """Rows at random, not quasi-random: error bars are to show the sample's scatter."""
        rng = np.random.default_rng(seed)
        return lambda n: equally_weighted(self.from_uniform(rng.random((n, 1))))

    def quadrature(self, n_points: int) -> Points | None:
        """All rows, whatever their number."""
        return Points(self.x, self.weight)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the rows; a constant column is given some width."""
        low, high = self.x.min(axis=0), self.x.max(axis=0)
        room = np.where(high > low, 0.0, 0.5)
        return low - room, high + room
