"""Neighbourhood graphs, the eigenmaps of their Laplacian, and maps that follow them.

The paper's optional warm start (Sec. 2.5 and App. B) distils each φ_k from an eigenmap of a graph
on some of the rows; `solver="spectral"` trains on such a graph alone.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.neighbors import NearestNeighbors

from piefs.core.maps import ScalarMap
from piefs.training.batches import Samples, some_rows
from piefs.training.config import Metric, Optimizer, Settings
from piefs.training.loop import train
from piefs.training.state import TrainState

N_NEIGHBORS = 10
DENSE_POINTS = 2000  # up to here a dense eigenproblem is quicker, and has no iteration to fail
N_STEPS, N_POINTS = 2000, 1000  # of the distillation, and rows that a step of it sees
GRAPH = "neighbourhood graph"
Tell = Callable[[str, int, int], None]
"""Hears what is being prepared, how much of it is done, and of how much."""


def nearest_neighbors(x: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of and distances to the nearest other points, each (n, n_neighbors)."""
    indices = NearestNeighbors(n_neighbors=n_neighbors).fit(x).kneighbors(return_distance=False)
    # Distances by differences: the expanded square of points that nearly coincide is rounding.
    return indices, np.stack([np.linalg.norm(x[i] - x, axis=1) for i in indices.T], axis=1)


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
    deflated = lambda v: affinity @ v - 2 * constant * (constant @ v)  # noqa: E731
    operator: Any = LinearOperator((n, n), deflated, dtype=np.float64)  # pyright: ignore
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(operator, k=n_components, which="LA", v0=start)
    return vectors[:, np.argsort(values)]


def graph_samples(samples: Samples, settings: Settings, tell: Tell) -> tuple[Samples, np.ndarray]:
    """The rows of a graph with their eigenmaps for targets, and their numbers."""
    rows = some_rows([settings.seed, len(samples)], len(samples), settings.graph_rows)
    tell(GRAPH, 0, 1)
    x = samples.x[rows]
    targets = eigenmaps(x, settings.n_components).astype(x.dtype)
    tell(GRAPH, 1, 1)
    return Samples(x, targets, samples.weights[rows]), rows


def distilled(
    graph: Samples, settings: Settings, tell: Tell = lambda *told: None
) -> tuple[ScalarMap, ...]:
    """A map for each eigenmap: Adam on E|Φ − ψ|² from a random start, in batches of 1,000 rows."""
    told = partial(tell, "maps that follow the graph")
    plain = replace(
        settings,
        solver="spectral",
        steps_per_component=N_STEPS,
        batch_size=N_POINTS,
        learning_rate=1e-3,
        weight_decay=0.0,
        metric=Metric(),
        smoothness=0.0,
        optimizer=Optimizer("adam", 0.0, 5, 100, "auto", str(graph.x.dtype)),
        early_stopping=False,
    )

    def watch(state: TrainState) -> None:
        if not state.is_between_turns:
            told(state.step, N_STEPS)

    told(0, N_STEPS)
    rows = Samples(graph.x, graph.target)
    return train(rows, plain, readout_loss=None, callbacks=[watch]).frozen
