"""Neighbourhood graphs of points, and the eigenmaps of their Laplacian."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator, eigsh

N_NEIGHBORS = 10
DENSE_POINTS = 2000  # up to here a dense eigenproblem is quicker, and has no iteration to fail
BLOCK_ROWS = 2000


def nearest_neighbors(x: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of and distances to the nearest other points, each (n, n_neighbors), unsorted."""
    squares = np.einsum("nd,nd->n", x, x)
    indices, distances = [], []
    for start in range(0, len(x), BLOCK_ROWS):
        block = x[start : start + BLOCK_ROWS]
        squared = squares[start : start + len(block), None] + squares - 2 * block @ x.T
        squared[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        nearest = np.argpartition(squared, n_neighbors - 1, axis=1)[:, :n_neighbors]
        indices.append(nearest)
        # Of points that nearly coincide the expanded square is all rounding: take differences.
        differences = x[nearest] - block[:, None, :]
        distances.append(np.sqrt(np.einsum("nkd,nkd->nk", differences, differences)))
    return np.concatenate(indices), np.concatenate(distances)


def neighbourhood_weights(x: np.ndarray, n_neighbors: int = N_NEIGHBORS) -> sparse.csr_array:
    """Symmetric heat-kernel weights exp(−|x_i − x_j|²/s²) between near neighbours, (n, n).

    s is the median distance to the n_neighbors-th neighbour; a pair counts as near if either point
    is among the other's nearest.
    """
    n = len(x)
    n_neighbors = min(n_neighbors, n - 1)
    indices, distances = nearest_neighbors(x.astype(np.float64), n_neighbors)
    scale = np.median(distances.max(axis=1)) or 1.0
    # Far outliers keep a link, however weak: a point without any would have no eigenmap.
    weights = np.maximum(np.exp(-((distances / scale) ** 2)), np.finfo(np.float32).tiny)
    rows = np.repeat(np.arange(n), n_neighbors)
    one_way = sparse.csr_array((weights.ravel(), (rows, indices.ravel())), shape=(n, n))
    return one_way.maximum(one_way.T).tocsr()


def eigenmaps(x: np.ndarray, n_components: int, n_neighbors: int = N_NEIGHBORS) -> np.ndarray:
    """The leading non-constant eigenmaps of the random-walk graph Laplacian, (n, n_components).

    Eigenvectors of L = I − D⁻¹W, smallest eigenvalues first. The constant is projected out before
    solving, so that it cannot hide in the null space of a graph with several components. Columns
    have mean zero under the degrees and mean square one, as the Gram loss asks of a φ.
    """
    weights = neighbourhood_weights(x, n_neighbors)
    root_degree = np.sqrt(weights.sum(axis=1))
    scaling = sparse.diags_array(1 / root_degree)
    affinity = scaling @ weights @ scaling
    constant = root_degree / np.linalg.norm(root_degree)
    vectors = _leading_vectors(affinity, constant, n_components)
    maps = vectors[:, ::-1] / root_degree[:, None]
    return maps / np.sqrt(np.mean(maps**2, axis=0))


def _leading_vectors(
    affinity: sparse.csr_array, constant: np.ndarray, n_components: int
) -> np.ndarray:
    """Eigenvectors of the largest eigenvalues in ascending order, the constant's moved to −1."""
    n = len(constant)
    if n <= DENSE_POINTS:
        dense = affinity.toarray() - 2 * np.outer(constant, constant)
        return scipy.linalg.eigh(dense, subset_by_index=(n - n_components, n - 1))[1]

    def deflated(v: np.ndarray) -> np.ndarray:
        return affinity @ v - 2 * constant * (constant @ v)

    operator: Any = LinearOperator((n, n), deflated, dtype=np.float64)  # pyright: ignore
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(operator, k=n_components, which="LA", v0=start)
    return vectors[:, np.argsort(values)]
