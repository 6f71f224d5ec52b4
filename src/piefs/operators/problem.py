"""An eigenvalue problem, apart from any solver.

Find the lowest λ and the functions φ, orthonormal in L²(p), with Lφ = λφ, where

    Lφ = −(1/p) div(p AᵀA ∇φ) + Vφ ,     ⟨φ, Lφ⟩ = ∫ (|A∇φ|² + Vφ²) p dx ,

which is the modified Dirichlet form (eq:bilinear_form_1) with a given metric, and a potential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import DenseField, GradientField
from piefs.core.metric import MetricField, Off
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
    operator_metric: MetricField = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InputError(f"the domain must be one of piefs.operators, not {self.domain!r}")
        if self.boundary not in BOUNDARIES:
            raise InputError(
                f"unknown boundary {self.boundary!r}; choose one of {', '.join(BOUNDARIES)}"
            )
        with jax.enable_x64(True):
            metric = as_metric(self.metric, self.domain.dimension)
            object.__setattr__(self, "operator_metric", metric)
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
        _check("metric", transformed(self.operator_metric, x, jnp.ones((n, 1, d))), (n, 1, d))
        if self.density is None:
            return
        if isinstance(self.domain, PointCloud):
            raise InputError("a point cloud is its own density; give weights to the rows instead")
        if not bool(jnp.all(self.density(x) >= 0)):
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

    def log_density(self, x: Array) -> Array:
        """log p(x) up to a constant, (n,)."""
        return jnp.log((self.density or self.domain.density)(x))

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


# --- the operator's metric A(x): given, not learned --------------------------------------------


class Constant(MetricField):
    """One matrix A for all points, of any rank."""

    matrix: Array

    def apply(self, x: Array, v: GradientField) -> GradientField:
        return v.transformed_by(self.matrix)

    def log_scales(self, x: Array) -> Array:
        values = jnp.linalg.svd(self.matrix, compute_uv=False)
        return jnp.broadcast_to(jnp.log(values), x.shape)


class Field(MetricField):
    """A matrix A(x) for each point, by a function (n, d) → (n, d, d)."""

    function: Callable[[Array], Array] = eqx.field(static=True)

    def apply(self, x: Array, v: GradientField) -> GradientField:
        return DenseField(jnp.einsum("nij,nj->ni", self.function(x), v.dense()))

    def log_scales(self, x: Array) -> Array:
        return jnp.log(jnp.linalg.svd(self.function(x), compute_uv=False))


def as_metric(given: Any, dimension: int) -> MetricField:
    """A metric from None (A = I), a number, a matrix, a function of x, or a `MetricField`."""
    if given is None:
        return Off()
    if isinstance(given, MetricField):
        return given
    if callable(given):
        function: Any = given
        return Field(function)
    matrix = np.asarray(given, float)
    if matrix.ndim == 0:
        matrix = matrix * np.eye(dimension)
    if matrix.shape != (dimension, dimension) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"a metric in {dimension} dimensions must be a number, a {dimension} × {dimension} "
            f"matrix or a function of x; this has shape {matrix.shape}"
        )
    return Constant(jnp.asarray(matrix))


def transformed(metric: MetricField, x: Array, gradients: Array) -> Array:
    """A(x)∇f for many functions at once: (n, m, d) → (n, m, d)."""
    if isinstance(metric, Off):
        return gradients
    apply = lambda v: metric.apply(x, DenseField(v)).dense()  # noqa: E731
    return jax.vmap(apply, in_axes=1, out_axes=1)(gradients)


def tensor(metric: MetricField, x: Array) -> Array:
    """M(x) = A(x)ᵀA(x), shape (n, d, d)."""
    n, d = x.shape
    columns = transformed(metric, x, jnp.broadcast_to(jnp.eye(d, dtype=x.dtype), (n, d, d)))
    return jnp.einsum("nik,njk->nij", columns, columns)
