"""NeuralEF as a scikit-learn transformer; the method is in `eigenfunctions.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from piefs.errors import InputError
from piefs.training.evaluation import blockwise
from piefs.training.runtime import drop_compiled_if_many
from reproduction.baselines.eigenfunctions import (
    RBF,
    ArcCosine,
    Kernel,
    learn_eigenfunctions,
    median_distance,
)

KERNELS = ("rbf", "nngp")

_evaluate = jax.jit(lambda eigenfunctions, x: eigenfunctions(x))


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
    >>> from reproduction.baselines import NeuralEF
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
        drop_compiled_if_many()
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
