"""The optional graph-Laplacian warm start (paper, Sec. 2.5 and App. B).

Eigenmaps of a neighbourhood graph on a subsample (1,000 points) become targets, and each φ_k is
distilled against its eigenmap for 2,000 steps. Training then starts from these maps instead of
random ones.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.linalg
from jax import Array
from scipy.spatial.distance import cdist

from piefs.maps import ScalarMap, coordinates, init_map, stack, unstack

N_POINTS = 1000
N_STEPS = 2000
N_NEIGHBORS = 10


def neighbourhood_weights(x: np.ndarray, n_neighbors: int = N_NEIGHBORS) -> np.ndarray:
    """Symmetric heat-kernel weights exp(−|x_i − x_j|²/s²) between near neighbours, (n, n).

    s is the median distance to the n_neighbors-th neighbour; a pair counts as near if either point
    is among the other's nearest.
    """
    distance = cdist(x, x)
    np.fill_diagonal(distance, np.inf)
    n_neighbors = min(n_neighbors, len(x) - 1)
    nearest = np.partition(distance, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    scale = np.median(nearest) or 1.0
    near = distance <= np.maximum(nearest[:, None], nearest[None, :])
    return np.where(near, np.exp(-((distance / scale) ** 2)), 0.0)


def eigenmaps(x: np.ndarray, n_components: int, n_neighbors: int = N_NEIGHBORS) -> np.ndarray:
    """The leading non-constant eigenmaps of the random-walk graph Laplacian, (n, n_components).

    Eigenvectors of L = I − D⁻¹W, smallest eigenvalues first. The constant is projected out before
    solving, so that it cannot hide in the null space of a graph with several components. Columns
    have mean zero under the degrees and mean square one, as the Gram loss asks of a φ.
    """
    weights = neighbourhood_weights(x.astype(np.float64), n_neighbors)
    root_degree = np.sqrt(weights.sum(axis=1))
    affinity = weights / np.outer(root_degree, root_degree)
    constant = root_degree / np.linalg.norm(root_degree)
    affinity -= 2 * np.outer(constant, constant)  # moves its eigenvalue from 1, the top, to −1
    n = len(x)
    _, vectors = scipy.linalg.eigh(affinity, subset_by_index=(n - n_components, n - 1))
    maps = vectors[:, ::-1] / root_degree[:, None]
    return maps / np.sqrt(np.mean(maps**2, axis=0))


@partial(jax.jit, static_argnames="n_steps")
def distill(maps: ScalarMap, x: Array, targets: Array, n_steps: int = N_STEPS) -> ScalarMap:
    """A stack of K maps after `n_steps` of full-batch Adam on E|Φ(x) − targets|²."""
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-3, n_steps))

    def loss(maps: ScalarMap) -> Array:
        return jnp.sum(jnp.mean((coordinates(maps, x) - targets) ** 2, axis=0))

    def step(_: int, carry: tuple) -> tuple:
        maps, opt_state = carry
        updates, opt_state = optimizer.update(jax.grad(loss)(maps), opt_state)
        return optax.apply_updates(maps, updates), opt_state

    return jax.lax.fori_loop(
        0, n_steps, step, (maps, optimizer.init(eqx.filter(maps, eqx.is_array)))
    )[0]


def subsample(n: int, seed: int, n_points: int = N_POINTS) -> np.ndarray:
    """The rows that the graph is built on: at most `n_points` of n, in random order."""
    return np.random.default_rng([seed, n]).permutation(n)[:n_points]


def graph_laplacian_maps(
    x: np.ndarray,
    targets: np.ndarray,
    *,
    hidden: tuple[int, ...],
    activation: str,
    seed: int,
    n_steps: int = N_STEPS,
) -> list[ScalarMap]:
    """One map for each column of `targets` (the eigenmaps at x), distilled from a random start."""
    keys = jax.random.split(jax.random.key(seed), targets.shape[1])
    fresh = stack([init_map(key, x.shape[1], hidden, activation, x.dtype) for key in keys])
    return unstack(distill(fresh, jnp.asarray(x), jnp.asarray(targets, x.dtype), n_steps))
