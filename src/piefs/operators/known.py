"""Problems whose spectrum is known, by name."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.errors import InputError
from piefs.operators import exact
from piefs.operators.domains import Ball, Box, Domain, Ellipsoid, Gaussian, Radial, Sphere
from piefs.operators.exact import Spectrum
from piefs.operators.problem import EigenProblem, lebesgue
from piefs.operators.shapes import BumpBox


class Known(NamedTuple):
    """A problem, how many eigenpairs to look for by default, and settings that suit it."""

    problem: EigenProblem
    n_eigenpairs: int
    settings: dict[str, Any]


@cache
def known(name: str) -> Known:
    """The problem of that name."""
    if name not in PROBLEMS:
        raise InputError(f"no problem {name!r}; there are {', '.join(PROBLEMS)}")
    make, n_eigenpairs, settings = PROBLEMS[name]
    return Known(replace(make(), name=name), n_eigenpairs, settings)


def _problem(spectrum: Spectrum, domain: Domain, text: str, **keywords: Any) -> EigenProblem:
    given = {"exact": spectrum.values, "modes": spectrum.modes, "description": text}
    return EigenProblem(domain, **given | keywords)


BOXES = {
    "dirichlet": (exact.sines, "zero on the boundary"),
    "natural": (exact.cosines, "no flux through the boundary"),
    "periodic": (exact.waves, "periodic"),
}


def _box(boundary: str, dimension: int) -> EigenProblem:
    spectrum, condition = BOXES[boundary]
    region = "[0, 1]" + {1: "", 2: "²"}.get(dimension, f"^{dimension}")
    text = f"−Δ on {region}, {condition}"
    box = Box([0.0] * dimension, [1.0] * dimension)
    return _problem(spectrum(dimension), box, text, boundary=boundary)


def _bump_box(dimension: int) -> EigenProblem:
    """The Dirichlet problem of a box for f = φ/d, with points that crowd where φ is large."""
    spectrum, domain = exact.sines(dimension), BumpBox([0.0] * dimension, [1.0] * dimension)
    return _problem(
        spectrum,
        domain,
        f"−Δ on [0, 1]^{dimension}, zero on the boundary, as f = φ/∏4t(1 − t)",
        potential=domain.bump_potential,
        modes=lambda x, k: spectrum.modes(x, k) / np.prod(4 * x * (1 - x), axis=1)[:, None],
    )


def _disk() -> EigenProblem:
    text = "−Δ on the unit disk, zero on the boundary"
    return _problem(exact.DRUM, Ball(2), text, boundary="dirichlet")


def _anisotropic() -> EigenProblem:
    """With y = L⁻¹x the operator −div(LLᵀ∇) on the ellipse L·disk is −Δ on the disk."""
    angle = np.pi / 6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    frame = turn @ np.diag([2.0, 0.75])
    return _problem(
        exact.DRUM,
        Ellipsoid(frame),
        "−div(M∇) with a constant M on a rotated ellipse, zero on the boundary",
        metric=frame.T,
        boundary="dirichlet",
        modes=lambda x, k: exact.DRUM.modes(x @ np.linalg.inv(frame).T, k),
    )


def tangents(x: Array) -> Array:
    """A(x) = I − xxᵀ, the projection on the tangent plane of the unit sphere, (n, d, d)."""
    return jnp.eye(x.shape[1], dtype=x.dtype) - x[:, :, None] * x[:, None, :]


def _sphere() -> EigenProblem:
    text = "the Laplacian of the unit sphere S², A = I − xxᵀ"
    return _problem(exact.SPHERE, Sphere(3), text, metric=tangents)


def _ornstein_uhlenbeck(dimension: int) -> EigenProblem:
    text = f"−Δ + x·∇ in {dimension}-D: p = N(0, I)"
    return _problem(exact.hermite(dimension), Gaussian(dimension), text)


def _oscillator(dimension: int) -> EigenProblem:
    """The envelope exp(−x²/3) is wider than the ground state exp(−x²/2), which is left to learn."""
    return _problem(
        exact.oscillator(dimension),
        Gaussian(dimension, 0.75**0.5),
        f"−½Δ + ½|x|² on ℝ^{dimension}",
        density=lebesgue,
        metric=0.5**0.5,
        potential=lambda x: 0.5 * jnp.sum(x**2, axis=-1),
        envelope=lambda x: jnp.exp(-jnp.sum(x**2, axis=-1) / 3),
    )


REACH = 6.0
"""The length by which hydrogen's trial functions fall off; its states fall off by 1, 3, 5, …"""


def _radius(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x**2, axis=-1) + 1e-24)  # differentiable at the origin


def _hydrogen() -> EigenProblem:
    def embedding(x: Array) -> Array:
        r = _radius(x)[:, None]
        return jnp.concatenate([x / (4 + r), jnp.log1p(r) / 2], axis=1)  # with r comes the cusp

    return _problem(
        exact.HYDROGEN,
        Radial(2, REACH),
        "−Δ − 1/r in the plane",
        density=lebesgue,
        potential=lambda x: -1 / _radius(x),
        envelope=lambda x: jnp.exp(-_radius(x) / REACH),
        embedding=embedding,
    )


def _double_well() -> EigenProblem:
    return _problem(
        exact.DOUBLE_WELL,
        Box([-5.0], [5.0]),
        "−½φ″ + ¼(x² − 4)²φ: pairs of states that tunnel between two wells",
        metric=0.5**0.5,
        potential=lambda x: (x[:, 0] ** 2 - 4) ** 2 / 4,
        boundary="dirichlet",
    )


def _fokker_planck() -> EigenProblem:
    def density(x: Array) -> Array:
        return jnp.exp(-2 * (x[:, 0] ** 2 - 1) ** 2 - 1.5 * x[:, 1] ** 2 - x[:, 0] * x[:, 1])

    text = "−Δ + ∇U·∇ with two wells in the plane: p = exp(−U)"
    domain = Box([-2.2, -2.5], [2.2, 2.5])
    return _problem(exact.FOKKER_PLANCK, domain, text, density=density)


def _variable_metric() -> EigenProblem:
    def metric(x: Array) -> Array:
        first = jnp.stack([1.2 + 0.5 * jnp.cos(jnp.pi * x[:, 0]), 0.3 * x[:, 1]], axis=1)
        second = jnp.stack([0 * x[:, 0], 0.8 + 0.4 * x[:, 0] * x[:, 1]], axis=1)
        return jnp.stack([first, second], axis=1)

    text = "−div(AᵀA∇) on [0, 1]² with A(x) varying, no flux through the boundary"
    return _problem(exact.VARIABLE_METRIC, Box([0, 0], [1, 1]), text, metric=metric)


PLANE = {"n_points": 2500}
LONGER = {"n_steps": 512}
BOX_5D = {"n_points": 10**5, "n_maps": 12}
PROBLEMS: dict[str, tuple[Callable[[], EigenProblem], int, dict[str, Any]]] = {
    "interval": (lambda: _box("dirichlet", 1), 10, {"n_points": 200}),
    "dirichlet-square": (lambda: _box("dirichlet", 2), 10, PLANE),
    "neumann-square": (lambda: _box("natural", 2), 10, PLANE),
    "torus": (lambda: _box("periodic", 2), 13, PLANE),
    "dirichlet-box-5d": (lambda: _box("dirichlet", 5), 6, BOX_5D | LONGER),
    "dirichlet-box-10d": (lambda: _bump_box(10), 11, {"n_points": 2**17}),
    "disk": (_disk, 10, {}),
    "sphere": (_sphere, 16, {"n_points": 2**13}),
    "ou-1d": (lambda: _ornstein_uhlenbeck(1), 6, {"n_points": 100}),
    "ou-2d": (lambda: _ornstein_uhlenbeck(2), 10, PLANE),
    "ou-5d": (lambda: _ornstein_uhlenbeck(5), 21, {"hidden": (24, 24)} | LONGER),
    "ou-10d": (lambda: _ornstein_uhlenbeck(10), 11, {"n_points": 2**17} | LONGER),
    "anisotropic": (_anisotropic, 10, {}),
    "oscillator-1d": (lambda: _oscillator(1), 6, {"n_points": 100}),
    "oscillator-2d": (lambda: _oscillator(2), 10, PLANE),
    "oscillator-5d": (lambda: _oscillator(5), 6, LONGER),
    "hydrogen-2d": (_hydrogen, 9, {"n_points": 100**2}),
    "double-well": (_double_well, 6, {}),
    "fokker-planck": (_fokker_planck, 6, {"n_points": 4096}),
    "variable-metric": (_variable_metric, 6, {"n_points": 4096}),
}
