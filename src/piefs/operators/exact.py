"""Spectra and modes: products of one-dimensional ones, Bessel, Legendre; three computed ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from scipy.special import jn_zeros, jv, lpmv

Levels = Callable[[int], float]
Mode = Callable[[np.ndarray, int], np.ndarray]


class Spectrum(NamedTuple):
    """The k lowest eigenvalues, and at points x the k lowest modes (n, k) or None if unknown."""

    values: Callable[[int], np.ndarray]
    modes: Any = None


def lowest_products(levels: Sequence[Levels], k: int) -> list[tuple[float, tuple[int, ...]]]:
    """The k lowest sums Σ_i λ_{n_i} of ascending one-dimensional levels n = 0, 1, …, with the n_i.

    Best first: from each state found, one step up in each coordinate.
    """

    def total(n: tuple[int, ...]) -> float:
        return sum(level(i) for level, i in zip(levels, n, strict=True))

    start = tuple([0] * len(levels))
    queue, seen, found = [(total(start), start)], {start}, []
    while len(found) < k:
        value, n = heapq.heappop(queue)
        found.append((value, n))
        for axis in range(len(n)):
            up = (*n[:axis], n[axis] + 1, *n[axis + 1 :])
            if up not in seen:
                seen.add(up)
                heapq.heappush(queue, (total(up), up))
    return found


def products(levels: Sequence[Levels], mode: Mode) -> Spectrum:
    """The spectrum of a sum of one-dimensional operators, and its modes ∏ f_{n_i}(x_i)."""

    def product(x: np.ndarray, n: tuple[int, ...]) -> np.ndarray:
        return np.prod([mode(t, i) for t, i in zip(x.T, n, strict=True)], axis=0)

    return Spectrum(
        lambda k: np.array([value for value, _ in lowest_products(levels, k)]),
        lambda x, k: np.stack([product(x, n) for _, n in lowest_products(levels, k)], axis=1),
    )


def sines(dimension: int) -> Spectrum:
    """−Δ on [0, 1]ᵈ, zero on the boundary: π² Σ n_i², n_i ≥ 1."""
    level = lambda n: np.pi**2 * (n + 1) ** 2  # noqa: E731
    return products([level] * dimension, lambda t, n: np.sin(np.pi * (n + 1) * t))


def cosines(dimension: int) -> Spectrum:
    """−Δ on [0, 1]ᵈ, no flux through the boundary: π² Σ n_i², n_i ≥ 0."""
    return products([lambda n: (np.pi * n) ** 2] * dimension, lambda t, n: np.cos(np.pi * n * t))


def waves(dimension: int) -> Spectrum:
    """−Δ on the torus of unit lengths: (2π)² Σ n_i², a sine and a cosine for each n ≥ 1."""

    def mode(t: np.ndarray, n: int) -> np.ndarray:
        angle = 2 * np.pi * ((n + 1) // 2) * t
        return np.sin(angle) if n % 2 else np.cos(angle)

    return products([lambda n: (2 * np.pi * ((n + 1) // 2)) ** 2] * dimension, mode)


def hermite(rates: Sequence[float]) -> Spectrum:
    """Ornstein–Uhlenbeck with p = N(0, I): Σ a_i n_i, Hermite polynomials."""
    levels = [lambda n, a=a: a * n for a in rates]
    return products(levels, lambda t, n: hermeval(t, np.eye(n + 1)[n]))


def oscillator(dimension: int) -> Spectrum:
    """−½Δ + ½|x|²: Σ (n_i + ½), Hermite functions."""
    mode = lambda t, n: hermeval(2**0.5 * t, np.eye(n + 1)[n]) * np.exp(-(t**2) / 2)  # noqa: E731
    return products([lambda n: n + 0.5] * dimension, mode)


# --- round shapes ------------------------------------------------------------------------------


def _drum(k: int) -> list[tuple[float, int]]:
    """The k lowest (j_{m,n}², m), twice where m > 0: a cosine and a sine (−m) of the angle."""
    found = [
        (zero**2, sign * m)
        for m in range(k + 1)
        for zero in jn_zeros(m, k)
        for sign in ((1, -1) if m else (1,))
    ]
    return sorted(found)[:k]


def drum_values(k: int) -> np.ndarray:
    """−Δ on the unit disk, zero on the boundary: squared zeros of Bessel functions."""
    return np.array([value for value, _ in _drum(k)])


def drum_modes(x: np.ndarray, k: int) -> np.ndarray:
    """J_m(j_{m,n} r) times cos mθ or sin mθ."""
    r, angle = np.hypot(*x.T), np.arctan2(x[:, 1], x[:, 0])
    columns = [
        jv(abs(m), value**0.5 * r) * (np.cos(m * angle) if m >= 0 else np.sin(-m * angle))
        for value, m in _drum(k)
    ]
    return np.stack(columns, axis=1)


def sphere_values(k: int) -> np.ndarray:
    """The Laplacian on S²: l(l + 1), 2l + 1 times each."""
    degree = np.floor(np.sqrt(np.arange(k)))
    return degree * (degree + 1)


def sphere_modes(x: np.ndarray, k: int) -> np.ndarray:
    """Real spherical harmonics, without their factors."""
    angle = np.arctan2(x[:, 1], x[:, 0])
    columns = []
    for index in range(k):
        degree = int(index**0.5)
        m = index - degree * (degree + 1)
        wave = np.cos(m * angle) if m >= 0 else np.sin(-m * angle)
        columns.append(lpmv(abs(m), degree, x[:, 2]) * wave)
    return np.stack(columns, axis=1)


def hydrogen_values(k: int) -> np.ndarray:
    """−Δ − 1/r in the plane: −1/(2n + 1)², 2n + 1 times each."""
    return -1 / (2 * np.floor(np.sqrt(np.arange(k))) + 1) ** 2


DRUM, SPHERE = Spectrum(drum_values, drum_modes), Spectrum(sphere_values, sphere_modes)
HYDROGEN = Spectrum(hydrogen_values)


# --- computed once -----------------------------------------------------------------------------

COMPUTED = {
    "double-well": (
        *(1.338551933169, 1.348268283080, 3.489706961864, 3.819210566937),
        *(5.169514336597, 6.364391892343, 7.835794832601, 9.443004523158),
        *(11.183234974106, 13.039848112151, 15.002518833731, 17.062796910043),
    ),
    "fokker-planck": (
        *(0.0, 0.370953856, 3.077728559, 3.210336885, 6.132977243, 6.143679217),
        *(8.435052235, 9.228236581, 9.309603198, 11.661957307, 12.609069919, 12.710448411),
    ),
    "variable-metric": (
        *(0.0, 7.627534503, 11.762545628, 19.341629588, 31.628446743, 42.933120419),
        *(48.070155572, 56.561577755, 66.837594881, 78.546628417, 93.17443465, 103.603491905),
    ),
}
"""Lowest eigenvalues without a closed form, by Galerkin's method over Legendre polynomials; the
tests compute them again."""


def computed(name: str) -> Spectrum:
    """The spectrum of such a problem: k eigenvalues, or the twelve that are known."""
    return Spectrum(lambda k: np.array(COMPUTED[name][:k]))
