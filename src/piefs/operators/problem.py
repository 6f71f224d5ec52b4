"""An eigenvalue problem, apart from any solver.

Find the lowest λ and the functions φ, orthonormal in L²(p), with Lφ = λφ, where

    Lφ = −(1/p) div(p AᵀA ∇φ) + Vφ ,     ⟨φ, Lφ⟩ = ∫ (|A∇φ|² + Vφ²) p dx ,

which is the modified Dirichlet form (eq:bilinear_form_1) with a given metric, and a potential.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import DenseField
from piefs.core.metric import MetricField
from piefs.errors import InputError
from piefs.operators.domains import Domain, Function, Points
from piefs.operators.shapes import PointCloud

BOUNDARIES = ("natural", "dirichlet", "periodic")


@dataclass(frozen=True, eq=False)  # compared by identity: compiled functions know it by that
class EigenProblem:
    """A domain, a measure, a metric, a potential and a boundary condition.

    Parameters
    ----------
    domain
        The region the functions live on, with its points and reference measure q.
    density
        p(x) by a function (n, d) → (n,), up to a constant; None means p = q. On ℝᵈ,
        `density=lebesgue` is the plain dx.
    metric
        A(x): None for the identity, a number, a matrix, a function (n, d) → (n, d, d), or a
        `piefs.MetricField`. It may be singular, as on a surface.
    potential
        V(x) by a function (n, d) → (n,).
    boundary
        "natural" (no flux), "dirichlet" (functions carry the domain's distance as a factor) or
        "periodic" (functions of the cosines and sines of the coordinates in the box).
    envelope
        A positive factor (n, d) → (n,) of all functions, for decay on unbounded domains.
    embedding
        What networks see of a point, (n, d) → (n, m); by default the point, scaled to [−1, 1]ᵈ.
    exact
        A function k ↦ the k lowest eigenvalues, if they are known (fewer if only those are).
    modes
        A function (x, k) ↦ the k lowest eigenfunctions, (n, k), up to factors, if known.
    """

    domain: Domain
    density: Function | None = None
    metric: Any = None
    potential: Function | None = None
    boundary: str = "natural"
    envelope: Function | None = None
    embedding: Function | None = None
    exact: Callable[[int], np.ndarray] | None = None
    modes: Callable[[np.ndarray, int], np.ndarray] | None = None
    name: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InputError(f"the domain must be one of piefs.operators, not {self.domain!r}")
        if self.boundary not in BOUNDARIES:
            raise InputError(
                f"unknown boundary {self.boundary!r}; choose one of {', '.join(BOUNDARIES)}"
            )
        with jax.enable_x64(True):
            self._check_functions()

    def _check_functions(self) -> None:
        """Call every given function on a few points, so that faults show before training."""
        x = jnp.asarray(self.domain.sobol(0)(8).x)
        n, d = x.shape
        for name in ("density", "potential", "envelope"):
            if (function := getattr(self, name)) is not None:
                _check(name, function(x), (n,))
        if self.boundary == "dirichlet":
            _check("distance", self.domain.distance(x), (n,))
        if self.embedding is not None:
            embedded = jnp.asarray(self.embedding(x))
            _check("embedding", embedded, (n, embedded.shape[-1]))
        if not (isinstance(self.metric, MetricField | None) or callable(self.metric)):
            shape = np.asarray(self.metric).shape
            if shape not in ((), (d, d)):
                raise InputError(
                    f"a metric in {d} dimensions must be a number, a {d} × {d} matrix or a "
                    f"function of x; this has shape {shape}"
                )
        _check("metric", self.fluxes(x, jnp.ones((n, 1, d))), (n, 1, d))
        if self.density is not None and isinstance(self.domain, PointCloud):
            raise InputError("a point cloud is its own density; give weights to the rows instead")
        if self.density is not None and jnp.any(self.density(x) < 0):
            raise InputError("density(x) must not be negative")

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    @property
    def keeps_constants(self) -> bool:
        """Whether the constant is an eigenfunction, of eigenvalue zero."""
        return self.boundary != "dirichlet" and self.envelope is None and self.potential is None

    def measured(self, points: Points) -> Points:
        """Points of q as points of p: weights times p/q."""
        if self.density is None:
            return points
        with jax.enable_x64(True):
            x = jnp.asarray(points.x)
            ratio = np.asarray(self.density(x) / self.domain.density(x))
        return Points(points.x, points.weight * ratio)

    def fluxes(self, x: Array, gradients: Array) -> Array:
        """A(x)∇f of many functions at once: (n, m, d) → (n, m, d)."""
        metric = self.metric
        if metric is None:
            return gradients
        if isinstance(metric, MetricField):
            apply = lambda v: metric.apply(x, DenseField(v)).dense()  # noqa: E731
            return jax.vmap(apply, in_axes=1, out_axes=1)(gradients)
        if callable(metric):
            return jnp.einsum("nij,nmj->nmi", metric(x), gradients)
        matrix = jnp.asarray(metric, float)
        return matrix * gradients if matrix.ndim == 0 else gradients @ matrix.T

    def inputs(self, x: Array) -> Array:
        """What the networks see, (n, m)."""
        if self.embedding is not None:
            return self.embedding(x)
        low, high = self.domain.bounds()
        if self.boundary == "periodic":
            angle = 2 * jnp.pi * (x - low) / (high - low)
            return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=-1)
        return 2 * (x - low) / (high - low) - 1

    def factor(self, x: Array) -> Array:
        """What every function carries: the distance to a Dirichlet boundary, the envelope."""
        factor = jnp.ones(x.shape[0], x.dtype)
        if self.boundary == "dirichlet":
            factor = factor * self.domain.distance(x)
        return factor if self.envelope is None else factor * self.envelope(x)


def lebesgue(x: Array) -> Array:
    """The density 1 of the measure dx."""
    return jnp.ones(x.shape[0], x.dtype)


def _check(name: str, value: Any, shape: tuple[int, ...]) -> None:
    found = np.shape(value)
    if found != shape:
        raise InputError(f"{name}(x) must have shape {shape} for x of {shape[0]} rows, not {found}")
    if not np.all(np.isfinite(np.asarray(value))):
        raise InputError(f"{name}(x) is not finite everywhere in the domain")


def tensor(problem: EigenProblem, x: Array) -> Array:
    """M(x) = A(x)ᵀA(x), shape (n, d, d)."""
    n, d = x.shape
    columns = problem.fluxes(x, jnp.broadcast_to(jnp.eye(d, dtype=x.dtype), (n, d, d)))
    return jnp.einsum("nik,njk->nij", columns, columns)
