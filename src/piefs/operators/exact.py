"""Spectra and modes: products of one-dimensional ones, Bessel, Legendre; three computed ones."""

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import eval_hermitenorm, jn_zeros, jv, lpmv


class Spectrum(NamedTuple):
    """The k lowest eigenvalues, and at points x the k lowest modes (n, k) or None if unknown."""

    values: Callable[[int], np.ndarray]
    modes: Any = None


def products(
    dimension: int,
    level: Callable[[int], float],
    mode: Callable[[np.ndarray, int], np.ndarray],
) -> Spectrum:
    """The spectrum of a sum of equal operators, one for each coordinate.

    Their levels λ_0 ≤ λ_1 ≤ … add up to Σ_i λ_{n_i}, whose modes are ∏ f_{n_i}(x_i).
    """

    def lowest(k: int) -> list[tuple[float, tuple[int, ...]]]:
        found: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for _ in range(dimension):
            sums = ((value + level(n), (*state, n)) for value, state in found for n in range(k))
            found = heapq.nsmallest(k, sums)
        return found

    def modes(x: np.ndarray, k: int) -> np.ndarray:
        states = (state for _, state in lowest(k))
        columns = ([mode(t, n) for t, n in zip(x.T, state, strict=True)] for state in states)
        return np.stack([np.prod(column, axis=0) for column in columns], axis=1)

    return Spectrum(lambda k: np.array([value for value, _ in lowest(k)]), modes)


def sines(dimension: int) -> Spectrum:
    """−Δ on [0, 1]ᵈ, zero on the boundary: π² Σ n_i², n_i ≥ 1."""
    mode = lambda t, n: np.sin(np.pi * (n + 1) * t)  # noqa: E731
    return products(dimension, lambda n: np.pi**2 * (n + 1) ** 2, mode)


def cosines(dimension: int) -> Spectrum:
    """−Δ on [0, 1]ᵈ, no flux through the boundary: π² Σ n_i², n_i ≥ 0."""
    return products(dimension, lambda n: (np.pi * n) ** 2, lambda t, n: np.cos(np.pi * n * t))


def waves(dimension: int) -> Spectrum:
    """−Δ on the torus of unit lengths: (2π)² Σ n_i², a cosine and a sine for each n ≥ 1."""
    frequency = lambda n: 2 * np.pi * ((n + 1) // 2)  # noqa: E731
    mode = lambda t, n: (np.sin if n % 2 else np.cos)(frequency(n) * t)  # noqa: E731
    return products(dimension, lambda n: frequency(n) ** 2, mode)


def hermite(dimension: int) -> Spectrum:
    """Ornstein–Uhlenbeck with p = N(0, I): Σ n_i, Hermite polynomials."""
    return products(dimension, float, lambda t, n: eval_hermitenorm(n, t))


def oscillator(dimension: int) -> Spectrum:
    """−½Δ + ½|x|²: Σ (n_i + ½), Hermite functions."""
    mode = lambda t, n: eval_hermitenorm(n, 2**0.5 * t) * np.exp(-(t**2) / 2)  # noqa: E731
    return products(dimension, lambda n: n + 0.5, mode)


# --- round shapes ------------------------------------------------------------------------------


def _wave(angle: np.ndarray, m: int) -> np.ndarray:
    return np.cos(m * angle) if m >= 0 else np.sin(-m * angle)


def _drum(k: int) -> list[tuple[float, int]]:
    """The k lowest (j_{m,n}², m), twice where m > 0: a cosine and a sine (−m) of the angle."""
    zeros = ((zero**2, m) for m in range(-k, k + 1) for zero in jn_zeros(abs(m), k))
    return heapq.nsmallest(k, zeros)


def _drum_modes(x: np.ndarray, k: int) -> np.ndarray:
    """J_m(j_{m,n} r) times cos mθ or sin mθ."""
    r, angle = np.hypot(*x.T), np.arctan2(x[:, 1], x[:, 0])
    columns = [jv(abs(m), value**0.5 * r) * _wave(angle, m) for value, m in _drum(k)]
    return np.stack(columns, axis=1)


def _degrees(k: int) -> np.ndarray:
    """0, 1, 1, 1, 2, …: each n comes 2n + 1 times."""
    return np.floor(np.sqrt(np.arange(k))).astype(int)


def _sphere_modes(x: np.ndarray, k: int) -> np.ndarray:
    """Real spherical harmonics, without their factors."""
    angle = np.arctan2(x[:, 1], x[:, 0])
    orders = ((n, i - n * (n + 1)) for i, n in enumerate(_degrees(k).tolist()))
    columns = [lpmv(abs(m), n, x[:, 2]) * _wave(angle, m) for n, m in orders]
    return np.stack(columns, axis=1)


DRUM = Spectrum(lambda k: np.array([value for value, _ in _drum(k)]), _drum_modes)
"""−Δ on the unit disk, zero on the boundary: squared zeros of Bessel functions."""
SPHERE = Spectrum(lambda k: _degrees(k) * (_degrees(k) + 1), _sphere_modes)
"""The Laplacian on S²: l(l + 1), 2l + 1 times each."""
HYDROGEN = Spectrum(lambda k: -1 / (2 * _degrees(k) + 1) ** 2)
"""−Δ − 1/r in the plane: −1/(2n + 1)², 2n + 1 times each."""


# --- computed once -----------------------------------------------------------------------------


def _computed(*values: float) -> Spectrum:
    """A spectrum without a closed form: its lowest eigenvalues, k or as many as are known.

    By Galerkin's method over Legendre polynomials; the tests compute them again.
    """
    return Spectrum(lambda k: np.array(values[:k]))


DOUBLE_WELL = _computed(
    *(1.338551933169, 1.348268283080, 3.489706961864, 3.819210566937),
    *(5.169514336597, 6.364391892343, 7.835794832601, 9.443004523158),
    *(11.183234974106, 13.039848112151, 15.002518833731, 17.062796910043),
)
FOKKER_PLANCK = _computed(
    *(0.0, 0.370953856, 3.077728559, 3.210336885, 6.132977243, 6.143679217),
    *(8.435052235, 9.228236581, 9.309603198, 11.661957307, 12.609069919, 12.710448411),
)
VARIABLE_METRIC = _computed(
    *(0.0, 7.627534503, 11.762545628, 19.341629588, 31.628446743, 42.933120419),
    *(48.070155572, 56.561577755, 66.837594881, 78.546628417, 93.17443465, 103.603491905),
)
