"""What a solver found: eigenvalues, functions to call, and how far both can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.maps import ScalarMap
from piefs.core.networks import ACTIVATIONS, MLP
from piefs.core.trees import filled, named_arrays
from piefs.data.documents import reading
from piefs.data.models import DOCUMENT, read_model, write_model
from piefs.errors import InputError, ModelFileError
from piefs.operators.domains import equally_weighted
from piefs.operators.finish import blocks
from piefs.operators.problems import EigenProblem
from piefs.operators.spectra import clusters, relative_errors
from piefs.operators.trial import n_units, units, with_gradients


@dataclass(frozen=True, eq=False)
class EigenSolution:
    """The lowest k eigenpairs of a problem; `solution(x)` gives the functions' values.

    `error_bars` is the integration error of the eigenvalues, `residuals` are ‖Lφ − λφ‖/‖φ‖ (NaN
    for a point cloud), `gram` is ∫φ_iφ_j p as other points see it than those of the Ritz step (a
    poorer rule, or a part of the sample), and `history` has the loss while training. The functions
    are combinations, by `coefficients` (m, k), of the factor and all last hidden units of `maps`.
    """

    problem: EigenProblem
    maps: ScalarMap
    coefficients: np.ndarray
    eigenvalues: np.ndarray
    error_bars: np.ndarray
    residuals: np.ndarray
    gram: np.ndarray
    history: list[dict[str, float]]
    settings: dict[str, Any]
    seconds: float
    points: str

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """φ_1(x) … φ_k(x), shape (n, k), for points of shape (n, d)."""
        return self._evaluate(_values, x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """∇φ_1(x) … ∇φ_k(x), shape (n, k, d)."""
        return self._evaluate(_gradients, x)

    def _evaluate(self, function: Any, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, float)
        if x.ndim != 2 or x.shape[1] != self.problem.dimension:
            raise InputError(f"points must have shape (n, {self.problem.dimension}), not {x.shape}")
        if not len(x):
            return np.zeros((0, len(self), *x.shape[1:])[: 2 if function is _values else 3])
        width = n_units(self.maps) * (1 + self.problem.dimension)
        with jax.enable_x64(True):
            coefficients = jnp.asarray(self.coefficients)
            parts = [
                np.asarray(function(self.problem, self.maps, coefficients, rows))
                for rows, _ in blocks(equally_weighted(x), width)
            ]
        return np.concatenate(parts)[: len(x)]

    @property
    def exact(self) -> np.ndarray | None:
        """The known eigenvalues, where they are known."""
        return None if self.problem.exact is None else np.asarray(self.problem.exact(len(self)))

    @property
    def relative_error(self) -> np.ndarray | None:
        """|μ − λ|/|λ| of each eigenvalue, absolute where λ = 0."""
        exact = self.exact
        return None if exact is None else relative_errors(self.eigenvalues, exact)

    def subspaces(self, tolerance: float = 1e-2) -> list[slice]:
        """Which functions belong together: eigenvalues that coincide within `tolerance`."""
        return clusters(self.eigenvalues, tolerance)

    def summary(self) -> dict[str, Any]:
        """Numbers for people and for JSON."""
        exact, error = self.exact, self.relative_error
        return {
            "problem": self.problem.name,
            "eigenvalues": self.eigenvalues.tolist(),
            "error_bars": self.error_bars.tolist(),
            "exact": None if exact is None else exact.tolist(),
            "relative_error": None if error is None else error.tolist(),
            "residual": self.residuals.tolist(),
            "gram_residual": float(np.linalg.norm(self.gram - np.eye(len(self)))),
            "points": self.points,
            "seconds": self.seconds,
            "settings": {
                k: list(v) if isinstance(v, tuple) else v for k, v in self.settings.items()
            },
        }

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """A model folder: weights.safetensors and model.json, without pickle.

        A problem of one's own is code, and is not saved: give it to `load` again.
        """
        names = ("coefficients", "eigenvalues", "error_bars", "residuals", "gram")
        arrays = {name: getattr(self, name) for name in names}
        document = self.summary() | {
            "kind": KIND,
            "activation": self.maps.net.activation,
            "history": self.history,
        }
        write_model(Path(folder), arrays | named_arrays({"maps": self.maps}), document)

    @classmethod
    def load(cls, folder: str | Path, problem: EigenProblem | None = None) -> EigenSolution:
        """A saved solution; `problem` is found by its name where it is one of the library's."""
        folder = Path(folder)
        arrays, document = read_model(folder)
        if document.get("kind") != KIND:
            raise ModelFileError(f"{folder} holds a model, not a solved eigenproblem")
        with reading(folder / DOCUMENT, "solve the problem again", ModelFileError):
            if problem is None:
                from piefs.operators.library import known

                problem = known(document["problem"]).problem
            weights = {name: arrays.pop(name) for name in list(arrays) if name.startswith("maps.")}
            maps = ScalarMap(_network(weights, document["activation"]))
            with jax.enable_x64(True):
                maps = filled({"maps": maps}, weights)["maps"]
            return cls(
                problem=problem,
                maps=maps,
                history=document["history"],
                settings=document["settings"],
                seconds=document["seconds"],
                points=document["points"],
                **arrays,
            )


KIND = "eigenproblem"


def _network(weights: dict[str, np.ndarray], activation: str) -> MLP:
    """The stack of networks with its layers in order."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"unknown activation {activation!r}")
    n_layers = len(weights) // 2
    stacks: dict[str, Any] = {
        kind: tuple(weights[f"maps.net.{kind}.{layer}"] for layer in range(n_layers))
        for kind in ("weights", "biases")
    }
    return MLP(**stacks, activation=activation)


@partial(jax.jit, static_argnums=0)
def _values(problem: EigenProblem, maps: ScalarMap, coefficients: Array, x: Array) -> Array:
    return units(problem, maps, x) @ coefficients


@partial(jax.jit, static_argnums=0)
def _gradients(problem: EigenProblem, maps: ScalarMap, coefficients: Array, x: Array) -> Array:
    return with_gradients(lambda x: units(problem, maps, x) @ coefficients, x)[1]
