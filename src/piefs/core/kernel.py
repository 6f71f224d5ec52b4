"""A kernel that carries the metric, its features, and the evidence that chooses the metric.

k(x, z) = exp(−D) + a·½(|x|_λ + |z|_λ − D) + c⟨x, z⟩/d with D = |x − z|_λ = Σ_i λ_i |x_i − z_i|.

exp(−λ|x − z|) is the Green's function of λ² − ∂² (up to a factor), and ½(|x| + |z| − |x − z|) that
of −∂²: the squared norm of a function is a Dirichlet energy in the metric A = Λ⁻¹, of products of
inputs in the first term and of sums of functions of one input in the second. No JAX.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from scipy.linalg.lapack import dpotri  # pyright: ignore[reportAttributeAccessIssue]
from scipy.spatial.distance import cdist, pdist, squareform
from threadpoolctl import threadpool_limits

CACHED_ELEMENTS, FEW_BLOCKS = 2**17, 4
JITTER = 1e-8
LEAST, MOST = -10.0, 6.0
"""Limits of the logarithms of noise and of a and c."""

PRIOR = 0.2
"""Weight of the variance of log λ beside the evidence of a row."""

STEPS, RATE = 25, 0.15
EQUAL_ROWS = 250
WIDTHS = (0.25, 0.5, 1, 2, 4, 8)
"""Of equal λ: lengths in units of the median distance of two rows."""

RIDGES = np.logspace(-4, 2.5, 14)


@dataclass(frozen=True, eq=False)
class Kernel:
    """The kernel of given λ (as logarithms, (d,)) and weights of its additive and linear terms."""

    log_lam: np.ndarray
    additive: float = 0.0
    linear: float = 0.0

    @property
    def lam(self) -> np.ndarray:
        """λ, shape (d,)."""
        return np.exp(self.log_lam)

    def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """k(x_i, z_j), shape (n, m)."""
        x_lam, z_lam, half = x * self.lam, z * self.lam, 0.5 * self.additive
        x_reach, z_reach = half * np.abs(x_lam).sum(axis=1), half * np.abs(z_lam).sum(axis=1)
        found = x @ (z.T * (self.linear / x.shape[1]))

        def add(rows: slice) -> None:
            d = cdist(x_lam[rows], z_lam, "cityblock")
            block = found[rows]
            block += z_reach
            block += x_reach[rows, None]
            block += np.exp(-d)
            d *= half
            block -= d

        by_rows(add, len(x), len(z))
        return found


def by_rows(function: Callable[[slice], None], n: int, width: int) -> None:
    """Call a function for blocks of n rows that fit a core's cache, in one thread a core."""
    step = max(1, CACHED_ELEMENTS // max(width, 1))
    blocks = [slice(start, start + step) for start in range(0, n, step)]
    if len(blocks) < FEW_BLOCKS:
        for block in blocks:
            function(block)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(function, blocks))


@dataclass(frozen=True, eq=False)
class KernelMaps:
    """φ_k(z) = Σ_j [exp(−D_j) − (a/2) D_j] V_jk + (a/2)|z|_λ Σ_j V_jk + z·B_k + b_k.

    D_j is the distance from landmark j in the metric λ; `weights` V are (m, K), `slopes` B (d, K).
    """

    landmarks: np.ndarray
    log_lam: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray
    offset: np.ndarray
    additive: np.ndarray

    needs_jax: ClassVar[bool] = False

    def coordinates(self, z: Any) -> Any:
        """Φ(z), shape (n, K)."""
        lam = np.exp(self.log_lam)
        z_lam, ends = z * lam, self.landmarks * lam
        half = 0.5 * self.additive
        straight = half * abs(z_lam).sum(axis=1)[:, None] * self.weights.sum(axis=0)
        straight = straight + z @ self.slopes + self.offset
        if not isinstance(z, np.ndarray):  # of JAX
            d = abs(z_lam[:, None] - ends).sum(axis=2)
            return (z.__array_namespace__().exp(-d) - half * d) @ self.weights + straight

        def add(rows: slice) -> None:
            d = cdist(z_lam[rows], ends, "cityblock").astype(z.dtype, copy=False)
            straight[rows] += (np.exp(-d) - half * d) @ self.weights

        by_rows(add, len(z), len(ends))
        return straight

    def leading(self, k: int) -> "KernelMaps":
        """The first k of the maps."""
        parts = self.weights[:, :k], self.slopes[:, :k], self.offset[:k]
        return KernelMaps(self.landmarks, self.log_lam, *parts, self.additive)

    def mixed(self, mean: np.ndarray, by: np.ndarray) -> "KernelMaps":
        """(Φ − mean) B for a K × K matrix B."""
        parts = self.weights @ by, self.slopes @ by, (self.offset - mean) @ by
        return KernelMaps(self.landmarks, self.log_lam, *parts, self.additive)

    def coordinates_and_gradients(self, z: Any) -> tuple[Any, Any]:
        """Φ(z), shape (n, K), and ∇φ_k(z), shape (n, K, d), one input after the other."""
        lam, half = np.exp(self.log_lam), 0.5 * self.additive
        curved = np.exp(-cdist(z * lam, self.landmarks * lam, "cityblock")) + half
        total = half * self.weights.sum(axis=0)
        found = np.empty((len(z), len(self.offset), len(lam)), self.weights.dtype)
        for i, rate in enumerate(lam):
            sides = np.sign(z[:, i, None] - self.landmarks[:, i])
            bent = np.sign(z[:, i, None]) * total - (curved * sides) @ self.weights
            found[:, :, i] = rate * bent + self.slopes[i]
        return self.coordinates(z), found


class Evidence:
    """Minus twice the log evidence, a row and output, of Gaussian processes with this kernel.

    F(p) = log(yᵀS⁻¹y/Nq) + (log det S + (N − n) log σ²)/N + prior, S = K + σ² diag(1/w), for p =
    (log λ, log σ², log a, log c); the scale of the process is profiled out. Row i stands for w_i
    equal ones, N = Σ w. All columns of y share S; q of them count. The prior holds each log λ_i
    near their mean. But for (N − n)/N, ∂F/∂p = tr(H ∂S/∂p), H = S⁻¹/N − vvᵀ/yᵀv, v = S⁻¹y.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, n_outputs: int) -> None:
        self.x, self.y, self.n_outputs = x, y, n_outputs
        self.reach, self.noises, self.mass = 0.5 * np.abs(x), 1 / weight, float(weight.sum())
        apart = [pdist(column[:, None], "cityblock") for column in x.T]
        self.apart = np.stack(apart, dtype=np.float32)  # of pairs of rows, (d, n(n − 1)/2)
        self.product = x @ x.T / x.shape[1]

    def __call__(self, p: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and its gradient."""
        (n, d), lam = self.x.shape, np.exp(p[: self.x.shape[1]])
        noise, a, c = np.exp(np.clip(p[d:], LEAST, MOST))
        apart = lam.astype(np.float32) @ self.apart
        e, reach = np.exp(-apart), self.reach @ lam
        s = squareform(e - np.float32(0.5 * a) * apart).astype(float)
        s += c * self.product
        s += a * reach
        s += a * reach[:, None]
        s[np.diag_indices(n)] += 1 + noise * self.noises + JITTER
        inverse, log_det = inverse_and_log_det(s)
        v = inverse @ self.y
        squares = float(np.sum(v * self.y))
        h = inverse
        h /= self.mass
        h -= v @ (v.T / squares)
        pairs = squareform(h, checks=False).astype(np.float32)
        sums = h.sum(axis=1)
        g = 2 * a * (self.reach.T @ sums) - 2 * (self.apart @ (pairs * (e + np.float32(0.5 * a))))
        spread = p[:d] - p[:d].mean()
        extra = 1 - n / self.mass
        value = np.log(squares / (self.mass * self.n_outputs)) + log_det / self.mass
        value += extra * np.log(noise)
        bent = 2 * (reach @ sums) - float(pairs @ apart)
        others = [
            noise * (np.diag(h) @ self.noises) + extra,
            a * bent,
            c * np.sum(h * self.product),
        ]
        gradient = np.array([*(lam * g + 2 * PRIOR * spread / d), *others])
        return float(value + PRIOR * np.mean(spread**2)), gradient


def inverse_and_log_det(s: np.ndarray) -> tuple[np.ndarray, float]:
    """Of a positive definite matrix, by its Cholesky factor."""
    factor = la.cholesky(s, lower=True, overwrite_a=True, check_finite=False)
    log_det = 2 * float(np.log(np.diag(factor)).sum())
    lower = dpotri(factor, lower=1, overwrite_c=1)[0]  # what is above its diagonal stays zero
    inverse = lower + lower.T
    inverse[np.diag_indices(len(lower))] *= 0.5
    return inverse, log_det


def descended(p: np.ndarray, objective: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> Any:
    """The best point that a few steps of Adam see."""
    mean, square, best = np.zeros_like(p), np.zeros_like(p), (np.inf, p)
    for i in range(STEPS):
        value, g = objective(p)
        if value < best[0]:
            best = (value, p)
        mean, square = 0.8 * mean + 0.2 * g, 0.95 * square + 0.05 * g**2
        step = (mean / (1 - 0.8 ** (i + 1))) / (np.sqrt(square / (1 - 0.95 ** (i + 1))) + 1e-10)
        p = p - RATE * (0.5 + 0.5 * np.cos(np.pi * i / STEPS)) * step
    return best[1]


@threadpool_limits.wrap(limits=1)  # small matrices: threads only get in each other's way
def learned(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, n_outputs: int, *, equal: bool = False
) -> Kernel:
    """The kernel of the best evidence near the best equal λ.

    y are centred targets, (n, C); `equal` keeps all λ_i the same.
    """
    d = x.shape[1]
    few = slice(EQUAL_ROWS)
    log_lam, log_noise = equal_rates(x[few], y[few], weight[few])
    evidence = Evidence(x, y, weight, n_outputs)

    def tied(q: np.ndarray) -> tuple[float, np.ndarray]:
        value, g = evidence(np.array([*[q[0]] * d, *q[1:]]))
        return value, np.array([g[:d].sum(), *g[d:]])

    begin = np.array([*[log_lam] * (1 if equal else d), log_noise, -1.0, -1.0])
    p = descended(begin, tied if equal else evidence)
    a, c = np.exp(np.clip(p[-2:], LEAST, MOST))
    return Kernel(np.resize(p[:-3], d), float(a), float(c))


def typical_distance(x: np.ndarray) -> float:
    """The median distance of two rows in the metric of equal λ = 1."""
    apart = pdist(x, "cityblock")
    return float(np.median(apart)) if len(apart) and np.median(apart) > 0 else 1.0


def equal_rates(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Logarithms of the equal λ and the noise of the smallest leave-one-out error."""
    apart, typical, best = squareform(pdist(x, "cityblock")), typical_distance(x), (np.inf, 0, 0)
    root = np.sqrt(weight)[:, None]
    for width in WIDTHS:
        s, u = np.linalg.eigh(root * np.exp(-apart / (width * typical)) * root.T)
        t = u.T @ (root * y)
        for ridge in RIDGES:
            q = 1 / (np.maximum(s, 0) + ridge)
            error = (((u @ (q[:, None] * t)) / (u**2 @ q)[:, None]) ** 2).sum()
            best = min(best, (error, -np.log(width * typical), np.log(ridge)))
    return best[1], best[2]
