"""The exact finish: orthonormal coordinates, and their order by smoothness (Rayleigh–Ritz).

Training leaves coordinates that are orthonormal up to a small Gram error. A K × K matrix mends the
rest. `whitening` is triangular (Gram–Schmidt): the first p coordinates still span what they
spanned, so the order stays. `ritz` rotates to the coordinates of stationary Dirichlet energy: the
smoothest first, which is another view of the same space and says nothing about importance.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

RELATIVE_FLOOR = 1e-7
"""Directions whose variance is below this share of the largest are noise of the arithmetic."""


KRYLOV, RANK_FLOOR = 128, 1e-8
"""Directions beside the leading ones, and singular values that count as zero."""


class Whitening(NamedTuple):
    """Lower triangular `mixing` M and its inverse: Φ′ = MΦ has Gram matrix M C Mᵀ = I."""

    mixing: np.ndarray
    unmixing: np.ndarray


def whitening(c: np.ndarray) -> Whitening:
    """Gram–Schmidt on a Gram matrix C (K × K), in double precision.

    Where maps are linearly dependent there are no K orthonormal coordinates; the redundant ones
    are then left small rather than blown up to noise.
    """
    c = np.asarray(c, dtype=np.float64)
    floor = RELATIVE_FLOOR * max(np.trace(c) / len(c), np.finfo(float).tiny)
    shortfall = max(0.0, floor - scipy.linalg.eigvalsh(c)[0])
    factor = np.linalg.cholesky(c + shortfall * np.eye(len(c)))
    return Whitening(scipy.linalg.solve_triangular(factor, np.eye(len(c)), lower=True), factor)


class Ritz(NamedTuple):
    """Ritz values, smallest first, and the rotation R whose rows mix Φ into their coordinates."""

    eigenvalues: np.ndarray
    rotation: np.ndarray


def ritz(dirichlet: np.ndarray, c: np.ndarray) -> Ritz:
    """The generalised eigenproblem D v = μ C v of the Dirichlet form against the Gram matrix.

    Signs are fixed: the largest entry of each row is positive.
    """
    values, vectors = scipy.linalg.eigh(
        np.asarray(dirichlet, np.float64), np.asarray(c, np.float64)
    )
    rotation = vectors.T
    largest = np.take_along_axis(rotation, np.abs(rotation).argmax(axis=1)[:, None], axis=1)
    return Ritz(values, rotation * np.where(largest < 0, -1.0, 1.0))


def leading_of_diagonal_and_rank(
    diagonal: np.ndarray, u: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """The n leading eigenpairs of diag(δ) + uuᵀ, δ falling, of an order m that may be large.

    To rounding they lie in the span of the leading unit vectors and of u, δu, δ²u, … below those.
    """
    m, n = len(diagonal), min(n, len(diagonal))
    n_units = min(m, 2 * n + 64)
    below = diagonal[n_units:, None]
    rest = np.zeros((m - n_units, 0))
    block, size, _ = np.linalg.svd(u[n_units:], full_matrices=False)
    block = block[:, size > RANK_FLOOR * max(size.max(initial=0), np.finfo(float).tiny)]
    while block.shape[1] > 0 and rest.shape[1] + block.shape[1] <= min(m - n_units, KRYLOV):
        rest = np.hstack([rest, block])
        block = below * block
        for _ in range(2):  # once is not enough in floating point
            block -= rest @ (rest.T @ block)
        block = np.linalg.qr(block)[0]
    basis = scipy.linalg.block_diag(np.eye(n_units), rest)
    across = basis.T @ u
    rho, v = np.linalg.eigh(basis.T @ (diagonal[:, None] * basis) + across @ across.T)
    return rho[::-1][:n], (basis @ v)[:, ::-1][:, :n]
