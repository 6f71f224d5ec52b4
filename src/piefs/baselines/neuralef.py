"""NeuralEF (Deng, Shi, Zhu 2022): eigenfunctions of a kernel, learned by K scalar networks.

The eigenfunctions of (Tf)(x) = E_x′ k(x, x′) f(x′) solve, one after the other,

    max R_jj − Σ_{i<j} R_ij²/R_ii  subject to  E ψ_j² = 1,   R_ij = E E ψ_i(x) k(x, x′) ψ_j(x′),

with R_jj the eigenvalue at the optimum. All K problems are ascended at once on mini-batches; ψ_i is
held fixed in the problem of ψ_j, and the constraint holds by normalising outputs over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from piefs.baselines.kernels import RBF, ArcCosine, Kernel, median_distance
from piefs.batches import Samples, chunk_length, chunks, prefetched
from piefs.columns import blockwise
from piefs.errors import InputError
from piefs.maps import ScalarMap, coordinates, init_map

KERNELS = ("rbf", "nngp")
AVERAGING = 0.01

_adam = optax.scale_by_adam()


class Eigenfunctions(eqx.Module):
    """ψ(x) = h((x − center)/scale)/√(mean square of h), with h a stack of K scalar networks.

    `scale` is one number for all inputs: the geometry that the kernel sees is not distorted.
    """

    center: Array
    scale: Array
    maps: ScalarMap
    mean_square: Array

    def outputs(self, x: Array) -> Array:
        """h, shape (n, K): the networks' outputs before normalisation."""
        return coordinates(self.maps, (x - self.center) / self.scale)

    def __call__(self, x: Array) -> Array:
        """ψ(x), shape (n, K), with the running mean squares: rows do not see each other."""
        return self.outputs(x) * jax.lax.rsqrt(self.mean_square)


_evaluate = jax.jit(lambda eigenfunctions, x: eigenfunctions(x))


class Training(NamedTuple):
    """What a step changes: the networks, Adam's moments, and running averages, each (K,)."""

    maps: ScalarMap
    moments: optax.OptState
    mean_square: Array
    eigenvalues: Array


def normalized(h: Array) -> tuple[Array, Array]:
    """h/√(mean h²) over the batch (n, K), so that Σ ψ_j² = n; and the mean squares, (K,)."""
    mean_square = jnp.mean(h**2, axis=0) + jnp.finfo(h.dtype).tiny
    return h * jax.lax.rsqrt(mean_square), mean_square


def objective(psi: Array, kernel: Array) -> Array:
    """Σ_j (R_jj − Σ_{i<j} R_ij²/R_ii) with R = ψᵀ k ψ/B², each summand a function of ψ_j alone.

    psi: (B, K), kernel: (B, B). Gradients stop at ψ_i, i < j, in the penalty.
    """
    image = kernel @ psi / len(psi) ** 2
    quotients = jnp.sum(psi * image, axis=0)
    products = jnp.triu(jax.lax.stop_gradient(psi).T @ image, 1)
    # R_ii is positive but for rounding, whose share of the largest eigenvalue is its floor.
    precision = jnp.finfo(psi.dtype)
    floor = precision.eps * jnp.mean(jnp.diagonal(kernel)) + precision.tiny
    fixed = jnp.maximum(jax.lax.stop_gradient(quotients), floor)
    return jnp.sum(quotients) - jnp.sum(products**2 / fixed[:, None])


def eigenvalue_estimates(psi: Array, kernel: Array) -> Array:
    """E k(x, x′)ψ_j(x)ψ_j(x′) over pairs of different rows, shape (K,).

    R_jj also pairs each row with itself, which adds about E k(x, x)/B to every eigenvalue.
    """
    n = len(psi)
    pairs = jnp.sum(psi * (kernel @ psi), axis=0) - jnp.diagonal(kernel) @ psi**2
    return pairs / (n * (n - 1))


@partial(jax.jit, donate_argnums=0)
def ascend(
    state: Training,
    kernel: Kernel,
    center: Array,
    scale: Array,
    chunk: Array,
    *,
    first_step: ArrayLike,
    n_steps: ArrayLike,
    total_steps: ArrayLike,
    learning_rate: ArrayLike,
) -> Training:
    """`n_steps` steps of Adam on the batches of a chunk, (steps, B, d); the rate is a cosine's."""

    def loss(maps: ScalarMap, x: Array, matrix: Array) -> tuple[Array, tuple[Array, Array]]:
        psi, mean_square = normalized(coordinates(maps, (x - center) / scale))
        return -objective(psi, matrix), (mean_square, eigenvalue_estimates(psi, matrix))

    def step(i: Array, state: Training) -> Training:
        matrix = kernel(chunk[i])
        grads, current = jax.grad(loss, has_aux=True)(state.maps, chunk[i], matrix)
        updates, moments = _adam.update(grads, state.moments)
        t = first_step + i
        rate = learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * t / total_steps))
        maps = jax.tree.map(lambda p, u: p - rate * u, state.maps, updates)
        # A plain average at first, an exponential one from step 1/AVERAGING on.
        share = jnp.maximum(1 / (t + 1), AVERAGING)
        averages = (a + share * (c - a) for a, c in zip(state[2:], current, strict=True))
        return Training(maps, moments, *averages)

    return jax.lax.fori_loop(0, n_steps, step, state)


@partial(jax.jit, static_argnums=(1, 2, 3))
def fresh_maps(seed: ArrayLike, n_maps: int, n_features: int, hidden: tuple[int, ...]) -> ScalarMap:
    """A stack of random networks in single precision, in one compilation for every seed."""
    keys = jax.random.split(jax.random.key(seed), n_maps)
    return jax.vmap(lambda key: init_map(key, n_features, hidden, dtype=jnp.float32))(keys)


def learn_eigenfunctions(
    x: np.ndarray,
    kernel: Kernel,
    *,
    n_components: int,
    hidden: Sequence[int],
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> tuple[Eigenfunctions, np.ndarray]:
    """The leading eigenfunctions of a kernel under the density of the rows x, and eigenvalues."""
    n, d = x.shape
    mean = x.mean(axis=0, dtype=np.float64).astype(x.dtype)
    deviation = np.sqrt(np.mean((x - mean) ** 2, dtype=np.float64)) or 1.0
    center, scale = jnp.asarray(mean), jnp.asarray(deviation, x.dtype)
    maps = fresh_maps(seed, n_components, d, tuple(hidden))
    # Two buffers: a donated one may not be given twice.
    averages = (jnp.zeros(n_components, x.dtype) for _ in range(2))
    state = Training(maps, _adam.init(maps), *averages)
    feed = chunks(
        Samples(x),
        np.zeros((n, 0), x.dtype),
        seed=seed,
        k=0,
        batch_size=batch_size,
        first_step=0,
        n_steps=n_steps,
        length=chunk_length(batch_size, d, x.itemsize, n_steps),
    )
    for chunk, first_step, length in prefetched(feed):
        state = ascend(
            *(state, kernel, center, scale, chunk.x),
            first_step=first_step,
            n_steps=length,
            total_steps=n_steps,
            learning_rate=learning_rate,
        )
    learned = Eigenfunctions(center, scale, state.maps, state.mean_square)
    return learned, np.asarray(state.eigenvalues)


class NeuralEF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Eigenfunctions of a kernel, learned by neural networks without labels.

    Parameters
    ----------
    n_components : int
        K, the number of eigenfunctions.
    kernel : {"rbf", "nngp"}
        Gaussian kernel, or the covariance of a random ReLU network (arc-cosine kernel).
    hidden : sequence of int
        Widths of the hidden layers of each network.
    steps, batch_size, learning_rate : int, int, float
        Budget and rate of Adam. A batch is clipped to the data.
    bandwidth : float or None
        ℓ of the Gaussian kernel; None is the median distance between rows.
    depth : int
        Hidden layers of the random ReLU network.
    random_state : int, RandomState or None
        Seed of initialisation and batches.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Running averages of the kernel operator's eigenvalues.
    eigenfunctions_ : Eigenfunctions
        The functions as a JAX pytree.
    bandwidth_ : float
        ℓ as used ("rbf" only).

    Examples
    --------
    >>> from piefs.baselines import NeuralEF
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> NeuralEF(n_components=3, steps=100, random_state=0).fit_transform(X).shape
    (150, 3)
    """

    n_features_in_: int

    def __init__(
        self,
        n_components: int = 16,
        *,
        kernel: str = "rbf",
        hidden: Sequence[int] = (64, 64, 64),
        steps: int = 5000,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        bandwidth: float | None = None,
        depth: int = 3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.bandwidth = bandwidth
        self.depth = depth
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Values are of single precision whatever the input's."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> NeuralEF:
        """Learn eigenfunctions from rows; `y` is not used."""
        self._check_keywords()
        X = validate_data(self, X, dtype=np.float32, order="C", ensure_min_samples=2)
        seed = self._seed()
        with jax.enable_x64(False):
            self.eigenfunctions_, self.eigenvalues_ = learn_eigenfunctions(
                X,
                self._kernel(X, seed),
                n_components=self.n_components,
                hidden=tuple(self.hidden),
                n_steps=self.steps,
                batch_size=min(self.batch_size, len(X)),
                learning_rate=self.learning_rate,
                seed=seed,
            )
        return self

    def transform(self, X: Any) -> np.ndarray:
        """ψ(x), shape (n, n_components), each of mean square one over the training rows."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        with jax.enable_x64(False):
            return blockwise(partial(_evaluate, self.eigenfunctions_), X)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _kernel(self, X: np.ndarray, seed: int) -> Kernel:
        if self.kernel == "nngp":
            return ArcCosine(self.depth)
        self.bandwidth_ = self.bandwidth or median_distance(X, seed)
        return RBF(jnp.asarray(self.bandwidth_, X.dtype))

    def _check_keywords(self) -> None:
        if self.kernel not in KERNELS:
            raise InputError(f"kernel={self.kernel!r} is not one of {', '.join(KERNELS)}")
        least = {"n_components": 1, "steps": 1, "batch_size": 2, "depth": 1}
        for name, minimum in least.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < minimum:
                raise InputError(f"{name}={value!r} must be an integer of at least {minimum}")
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise InputError(f"bandwidth={self.bandwidth!r} must be positive")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate={self.learning_rate!r} must be positive")
