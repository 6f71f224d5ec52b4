"""Problems whose spectrum is known, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.errors import InputError
from piefs.operators import exact
from piefs.operators.domains import Ball, Box, Ellipsoid, Gaussian, Radial, Sphere
from piefs.operators.problem import EigenProblem, lebesgue
from piefs.operators.shapes import BumpBox


@dataclass(frozen=True)
class Known:
    """A problem, how many eigenpairs to look for by default, and settings that suit it."""

    problem: EigenProblem
    n_eigenpairs: int = 10
    settings: dict[str, Any] = field(default_factory=dict)


def known(name: str) -> Known:
    """The problem of that name."""
    if name not in PROBLEMS:
        raise InputError(f"no problem {name!r}; there are {', '.join(PROBLEMS)}")
    return _made(name)


@cache
def _made(name: str) -> Known:
    found = PROBLEMS[name]()
    return replace(found, problem=replace(found.problem, name=name))


# --- boxes -------------------------------------------------------------------------------------


def _unit_box(dimension: int) -> Box:
    return Box([0.0] * dimension, [1.0] * dimension)


BOXES = {
    "dirichlet": (exact.sines, "zero on the boundary"),
    "natural": (exact.cosines, "no flux through the boundary"),
    "periodic": (exact.waves, "periodic"),
}


def _box(boundary: str, dimension: int, n_eigenpairs: int = 10, **settings: Any) -> Known:
    spectrum_of, condition = BOXES[boundary]
    spectrum = spectrum_of(dimension)
    region = "[0, 1]" + {1: "", 2: "²"}.get(dimension, f"^{dimension}")
    problem = EigenProblem(
        _unit_box(dimension),
        boundary=boundary,
        exact=spectrum.values,
        modes=spectrum.modes,
        description=f"−Δ on {region}, {condition}",
    )
    return Known(problem, n_eigenpairs, settings)


def _bump_box(dimension: int, n_eigenpairs: int, **settings: Any) -> Known:
    """The Dirichlet problem of a box for f = φ/d, with points that crowd where φ is large."""
    spectrum = exact.sines(dimension)
    domain = BumpBox([0.0] * dimension, [1.0] * dimension)

    def modes(x: np.ndarray, k: int) -> np.ndarray:
        with jax.enable_x64(True):
            bump = np.asarray(domain.bump(jnp.asarray(x)))
        return spectrum.modes(x, k) / bump[:, None]

    problem = EigenProblem(
        domain,
        potential=domain.bump_potential,
        exact=spectrum.values,
        modes=modes,
        description=f"−Δ on [0, 1]^{dimension}, zero on the boundary, as f = φ/∏4t(1 − t)",
    )
    return Known(problem, n_eigenpairs, settings)


# --- round shapes ------------------------------------------------------------------------------


def _disk() -> Known:
    problem = EigenProblem(
        Ball(2),
        boundary="dirichlet",
        exact=exact.drum_values,
        modes=exact.drum_modes,
        description="−Δ on the unit disk, zero on the boundary",
    )
    return Known(problem)


def _anisotropic() -> Known:
    """With y = L⁻¹x the operator −div(LLᵀ∇) on the ellipse L·disk is −Δ on the disk."""
    angle = np.pi / 6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    frame = turn @ np.diag([2.0, 0.75])
    problem = EigenProblem(
        Ellipsoid(frame),
        metric=frame.T,
        boundary="dirichlet",
        exact=exact.drum_values,
        modes=lambda x, k: exact.drum_modes(x @ np.linalg.inv(frame).T, k),
        description="−div(M∇) with a constant M on a rotated ellipse, zero on the boundary",
    )
    return Known(problem)


def tangents(x: Array) -> Array:
    """A(x) = I − xxᵀ, the projection on the tangent plane of the unit sphere, (n, d, d)."""
    return jnp.eye(x.shape[1], dtype=x.dtype) - x[:, :, None] * x[:, None, :]


def _sphere() -> Known:
    problem = EigenProblem(
        Sphere(3),
        metric=tangents,
        exact=exact.sphere_values,
        modes=exact.sphere_modes,
        description="the Laplacian of the unit sphere S², A = I − xxᵀ",
    )
    return Known(problem, 16, {"n_points": 2**13})


# --- all of space ------------------------------------------------------------------------------


def _ornstein_uhlenbeck(dimension: int, n_eigenpairs: int, **settings: Any) -> Known:
    spectrum = exact.hermite([1.0] * dimension)
    problem = EigenProblem(
        Gaussian(dimension),
        exact=spectrum.values,
        modes=spectrum.modes,
        description=f"−Δ + x·∇ in {dimension}-D: p = N(0, I)",
    )
    return Known(problem, n_eigenpairs, settings)


def _oscillator(dimension: int, n_eigenpairs: int, **settings: Any) -> Known:
    """The envelope exp(−x²/3) is wider than the ground state exp(−x²/2), which is left to learn."""
    spectrum = exact.oscillator(dimension)
    problem = EigenProblem(
        Gaussian(dimension, 0.75**0.5),
        density=lebesgue,
        metric=0.5**0.5,
        potential=lambda x: 0.5 * jnp.sum(x**2, axis=-1),
        envelope=lambda x: jnp.exp(-jnp.sum(x**2, axis=-1) / 3),
        exact=spectrum.values,
        modes=spectrum.modes,
        description=f"−½Δ + ½|x|² on ℝ^{dimension}",
    )
    return Known(problem, n_eigenpairs, settings)


REACH = 6.0
"""The length by which hydrogen's trial functions fall off; its states fall off by 1, 3, 5, …"""


def _radius(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x**2, axis=-1) + 1e-24)  # differentiable at the origin


def _hydrogen() -> Known:
    def embedding(x: Array) -> Array:
        r = _radius(x)[:, None]
        return jnp.concatenate([x / (4 + r), jnp.log1p(r) / 2], axis=1)  # with r comes the cusp

    problem = EigenProblem(
        Radial(2, REACH),
        density=lebesgue,
        potential=lambda x: -1 / _radius(x),
        envelope=lambda x: jnp.exp(-_radius(x) / REACH),
        embedding=embedding,
        exact=exact.hydrogen_values,
        description="−Δ − 1/r in the plane",
    )
    return Known(problem, 9, {"n_points": 100**2})


# --- without a closed form ---------------------------------------------------------------------


def _double_well() -> Known:
    problem = EigenProblem(
        Box([-5.0], [5.0]),
        metric=0.5**0.5,
        potential=lambda x: (x[:, 0] ** 2 - 4) ** 2 / 4,
        boundary="dirichlet",
        exact=exact.computed("double-well"),
        description="−½φ″ + ¼(x² − 4)²φ: pairs of states that tunnel between two wells",
    )
    return Known(problem, 6)


def _fokker_planck() -> Known:
    def density(x: Array) -> Array:
        return jnp.exp(-2 * (x[:, 0] ** 2 - 1) ** 2 - 1.5 * x[:, 1] ** 2 - x[:, 0] * x[:, 1])

    problem = EigenProblem(
        Box([-2.2, -2.5], [2.2, 2.5]),
        density=density,
        exact=exact.computed("fokker-planck"),
        description="−Δ + ∇U·∇ with two wells in the plane: p = exp(−U)",
    )
    return Known(problem, 6, {"n_points": 4096})


def _variable_metric() -> Known:
    def metric(x: Array) -> Array:
        first = jnp.stack([1.2 + 0.5 * jnp.cos(jnp.pi * x[:, 0]), 0.3 * x[:, 1]], axis=1)
        second = jnp.stack([0 * x[:, 0], 0.8 + 0.4 * x[:, 0] * x[:, 1]], axis=1)
        return jnp.stack([first, second], axis=1)

    problem = EigenProblem(
        _unit_box(2),
        metric=metric,
        exact=exact.computed("variable-metric"),
        description="−div(AᵀA∇) on [0, 1]² with A(x) varying, no flux through the boundary",
    )
    return Known(problem, 6, {"n_points": 4096})


PLANE = {"n_points": 2500}
LONGER = {"n_steps": 512}
PROBLEMS: dict[str, Callable[[], Known]] = {
    "interval": lambda: _box("dirichlet", 1, n_points=200),
    "dirichlet-square": lambda: _box("dirichlet", 2, **PLANE),
    "neumann-square": lambda: _box("natural", 2, **PLANE),
    "torus": lambda: _box("periodic", 2, 13, **PLANE),
    "dirichlet-box-5d": lambda: _box("dirichlet", 5, 6, n_points=10**5, n_maps=12, **LONGER),
    "dirichlet-box-10d": lambda: _bump_box(10, 11, n_points=2**17),
    "disk": _disk,
    "sphere": _sphere,
    "ou-1d": lambda: _ornstein_uhlenbeck(1, 6, n_points=100),
    "ou-2d": lambda: _ornstein_uhlenbeck(2, 10, **PLANE),
    "ou-5d": lambda: _ornstein_uhlenbeck(5, 21, hidden=(24, 24), **LONGER),
    "ou-10d": lambda: _ornstein_uhlenbeck(10, 11, n_points=2**17, **LONGER),
    "anisotropic": _anisotropic,
    "oscillator-1d": lambda: _oscillator(1, 6, n_points=100),
    "oscillator-2d": lambda: _oscillator(2, 10, **PLANE),
    "oscillator-5d": lambda: _oscillator(5, 6, **LONGER),
    "hydrogen-2d": _hydrogen,
    "double-well": _double_well,
    "fokker-planck": _fokker_planck,
    "variable-metric": _variable_metric,
}
