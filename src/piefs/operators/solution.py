"""What a solver found: eigenvalues, functions to call, and how far both can be trusted."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array

from piefs.core.maps import ScalarMap
from piefs.core.networks import MLP
from piefs.core.trees import named_arrays, structure_of, tree_of
from piefs.data.files import DOCUMENT, read_folder, reading, write_folder
from piefs.errors import InputError, ModelFileError
from piefs.operators.known import known
from piefs.operators.problem import EigenProblem
from piefs.operators.trial import block_length, n_units, units, with_gradients
from piefs.training.evaluation import blockwise

KIND, FORMAT = "eigenproblem", 3
ARRAYS = ("coefficients", "eigenvalues", "error_bars", "residuals", "gram")


@dataclass(frozen=True, eq=False)
class EigenSolution:
    """The lowest k eigenpairs of a problem; `solution(x)` gives the functions' values.

    `error_bars` is the integration error of the eigenvalues, `residuals` are ‖Lφ − λφ‖/‖φ‖ (NaN
    for a point cloud), `gram` is ∫φ_iφ_j p over other points than those of the Ritz step (a coarser
    rule, or a part of the sample), and `history` has the loss while training. The functions
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
        return self._evaluate(x, slopes=False)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """∇φ_1(x) … ∇φ_k(x), shape (n, k, d)."""
        return self._evaluate(x, slopes=True)

    def _evaluate(self, x: np.ndarray, *, slopes: bool) -> np.ndarray:
        x, d = np.asarray(x, float), self.problem.dimension
        if x.ndim != 2 or x.shape[1] != d:
            raise InputError(f"points must have shape (n, {d}), not {x.shape}")
        values = partial(_evaluated, self.problem, self.maps, self.coefficients, slopes=slopes)
        with jax.enable_x64(True):
            return blockwise(values, x, most=block_length(n_units(self.maps) * (1 + d)))

    @property
    def exact(self) -> np.ndarray | None:
        """The exact eigenvalues; None unless all of them are known."""
        if self.problem.exact is None:
            return None
        exact = np.asarray(self.problem.exact(len(self)))
        return exact if len(exact) == len(self) else None

    @property
    def relative_error(self) -> np.ndarray | None:
        """|μ − λ|/|λ| of each eigenvalue, absolute if λ = 0."""
        exact = self.exact
        if exact is None:
            return None
        return np.abs(self.eigenvalues - exact) / np.where(exact == 0, 1, np.abs(exact))

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
            "settings": self.settings | {"hidden": list(self.settings["hidden"])},
        }

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """A model folder: weights.safetensors and model.json, without pickle.

        A problem of your own is code, and is not saved: give it to `load` again.
        """
        arrays = {name: getattr(self, name) for name in ARRAYS} | named_arrays({"maps": self.maps})
        document = {"kind": KIND, "structure": structure_of(self.maps), "history": self.history}
        write_folder(Path(folder), arrays, self.summary() | document, FORMAT)

    @classmethod
    def load(cls, folder: str | Path, problem: EigenProblem | None = None) -> "EigenSolution":
        """A saved solution; `problem` is found by its name if it is one of the named ones."""
        folder = Path(folder)
        arrays, document = read_folder(folder, (2, FORMAT))
        if document.get("kind") != KIND:
            raise ModelFileError(f"{folder} holds a model, not a solved eigenproblem")
        with reading(folder / DOCUMENT, "solve the problem again", ModelFileError):
            problem = problem or known(document["problem"]).problem
            names = [name for name in arrays if name.startswith("maps.")]
            of_maps = {name.removeprefix("maps."): arrays.pop(name) for name in names}
            if "structure" in document:
                maps = tree_of(document["structure"], of_maps)
            else:
                maps = _maps_of_format_2(of_maps, document["activation"])
            if not isinstance(maps, ScalarMap):
                raise ValueError("its maps are something else")
            with jax.enable_x64(True):
                maps = jax.tree.map(jnp.asarray, maps)
            plain = {name: document[name] for name in ("history", "settings", "seconds", "points")}
            return cls(problem, maps, **arrays, **plain)


def _maps_of_format_2(arrays: dict[str, Any], activation: str) -> ScalarMap:
    """The maps of format 2, which has their structure in the names of their arrays alone."""
    layers = range(len(arrays) // 2)
    weights, biases = (
        tuple(arrays[f"net.{kind}.{i}"] for i in layers) for kind in ("weights", "biases")
    )
    return ScalarMap(MLP(weights, biases, activation))


@partial(jax.jit, static_argnames=("problem", "slopes"))
def _evaluated(
    problem: EigenProblem, maps: ScalarMap, coefficients: Any, x: Any, *, slopes: bool
) -> Array:
    functions = partial(units, problem, maps, mixing=coefficients)
    return with_gradients(functions, x)[1] if slopes else functions(x)


# --- comparing spectra -------------------------------------------------------------------------


def clusters(values: np.ndarray, tolerance: float = 1e-2) -> list[slice]:
    """Runs of ascending eigenvalues with gaps below `tolerance` of their size: one eigenspace each.

    The size is at least a thousandth of the largest value, so that zeros can be told apart.
    """
    values = np.asarray(values, float)
    size = np.maximum(np.abs(values[1:]), 1e-3 * np.abs(values).max(initial=0.0))
    breaks = np.flatnonzero(np.diff(values) > tolerance * size) + 1
    edges = [0, *breaks.tolist(), len(values)]
    return [slice(a, b) for a, b in pairwise(edges)]


def principal_angles(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The angles between two spans of functions in L²(w), largest first, in radians."""
    root = np.sqrt(weight)[:, None]
    return scipy.linalg.subspace_angles(root * first, root * second)
