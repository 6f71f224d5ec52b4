"""The solver: train maps on the sum of their Ritz values, then one large Ritz step."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from piefs.core.maps import ScalarMap, init_map, stack
from piefs.core.networks import ACTIVATIONS, MLP, generator
from piefs.errors import DivergedError, InputError
from piefs.operators import galerkin
from piefs.operators.domains import Points
from piefs.operators.problem import EigenProblem
from piefs.operators.shapes import PointCloud
from piefs.operators.solution import EigenSolution
from piefs.operators.trial import RitzLoss, residuals
from piefs.training.config import Optimizer
from piefs.training.runtime import drop_compiled_if_many
from piefs.training.step import Steps, begun, descend

POINTS = ("auto", "quadrature", "sobol")
OPTIMIZER = Optimizer("adam", warmup=0.05)
CHUNK = 32
N_REPLICATES = 8
"""Independent sets of quasi-random points in the Ritz step; their scatter gives its error."""
N_RESIDUAL_POINTS = 2048


class Progress(NamedTuple):
    """What a callback gets: the stage, how much of it is done, and the loss while training."""

    stage: str
    done: int
    total: int
    loss: float | None = None


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class EigenSolver:
    """The lowest eigenpairs of an `EigenProblem`.

    Parameters
    ----------
    n_eigenpairs
        How many.
    n_maps, hidden, activation
        The trained maps: how many (by default a few more than eigenpairs, at least 8), their hidden
        layers, and a smooth nonlinearity. The Ritz step is over all units of the last layer.
    n_steps, batch_size, learning_rate
        The training. With 0 steps the Ritz step is over random features.
    points, n_points
        What the Ritz step integrates with: "quadrature", "sobol", or "auto", the first that the
        domain has; and with how many points, at most.
    random_state
        Seed of initialisation and points.
    """

    n_eigenpairs: int = 10
    n_maps: int | None = None
    hidden: tuple[int, ...] = (32, 32)
    activation: str = "tanh"
    n_steps: int = 256
    batch_size: int = 1024
    learning_rate: float = 3e-3
    points: str = "auto"
    n_points: int = 2**16
    random_state: int = 0

    def __post_init__(self) -> None:
        least = {"n_eigenpairs": 1, "n_maps": 1, "n_steps": 0, "batch_size": 2, "n_points": 64}
        for name, bound in least.items():
            given = getattr(self, name)
            if given is not None and given < bound:
                raise InputError(f"{name} must be at least {bound}, not {given}")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError("hidden must name at least one layer of at least one unit")
        if not 0 < self.learning_rate < 1:
            raise InputError(f"learning_rate must lie between 0 and 1, not {self.learning_rate}")
        smooth = [name for name, sigma in ACTIVATIONS.items() if not sigma.is_flat]
        for name, choices in (("points", POINTS), ("activation", smooth)):
            given = getattr(self, name)
            if given not in choices:
                raise InputError(f"unknown {name} {given!r}; choose one of {', '.join(choices)}")
        if self.n_eigenpairs > self._n_units // 2:
            raise InputError(
                f"{self.n_eigenpairs} eigenpairs from {self._n_units} units: take more maps or "
                "wider layers"
            )

    def solve(self, problem: EigenProblem, callback: Callback | None = None) -> EigenSolution:
        """Eigenvalues and eigenfunctions, with error bars and residuals."""
        if not isinstance(problem, EigenProblem):
            raise InputError(f"solve needs an EigenProblem, not {type(problem).__name__}")
        drop_compiled_if_many()
        start, history, notify = time.perf_counter(), [], callback or (lambda progress: None)
        with jax.enable_x64(True):
            sets, kind = self._sets(problem)
            maps = self._trained(problem, history, notify)
            pairs, error_bars, gram = self._ritz_step(problem, maps, sets, notify)
            notify(Progress("residuals", len(sets), len(sets) + 1))
            check = problem.domain.sobol(self.random_state + 2)(N_RESIDUAL_POINTS)
            missed = residuals(problem, maps, pairs.coefficients, pairs.values, check)
        notify(Progress("residuals", len(sets) + 1, len(sets) + 1))
        return EigenSolution(
            problem=problem,
            maps=maps,
            coefficients=pairs.coefficients,
            eigenvalues=pairs.values,
            error_bars=error_bars,
            residuals=missed,
            gram=gram,
            history=history,
            settings=asdict(self),
            seconds=time.perf_counter() - start,
            points=kind,
        )

    @property
    def _n_maps(self) -> int:
        return self.n_maps or max(8, self.n_eigenpairs + 1)

    @property
    def _n_units(self) -> int:
        return 1 + self._n_maps * self.hidden[-1]

    def _sets(self, problem: EigenProblem) -> tuple[list[Points], str]:
        """One rule, or a cloud's rows in parts, or sets of quasi-random points; and which."""
        domain = problem.domain
        rule = None if self.points == "sobol" else domain.quadrature(self.n_points)
        if rule is None and self.points == "quadrature":
            raise InputError(
                f"no quadrature is known for this {type(domain).__name__} with "
                f"{self.n_points:,} points; use 'sobol', or raise n_points"
            )
        if rule is None:
            n_each = max(self.n_points // N_REPLICATES, self._n_units // 2)
            seeds = np.random.SeedSequence(self.random_state + 1).generate_state(N_REPLICATES)
            return [domain.sobol(int(seed))(n_each) for seed in seeds], "sobol"
        if not isinstance(domain, PointCloud):
            return [rule], "quadrature"
        order = np.random.default_rng(self.random_state).permutation(len(rule.x))
        n_sets = min(N_REPLICATES, len(order))
        parts = np.array_split(order, n_sets)
        return [Points(rule.x[rows], n_sets * rule.weight[rows]) for rows in parts], "sample"

    def _trained(self, problem: EigenProblem, history: list, notify: Callback) -> ScalarMap:
        """Maps that descended all at once, on fresh points at every step."""
        maps, loss = self._fresh(problem), RitzLoss(problem)
        state, draw = begun(OPTIMIZER, maps), problem.domain.sobol(self.random_state)
        total = -(-self.n_steps // CHUNK) * CHUNK
        shape = CHUNK, self.batch_size
        if total:
            notify(Progress("training", 0, total))
        for first in range(0, total, CHUNK):
            points = problem.measured(draw(CHUNK * self.batch_size))
            chunk = jax.tree.map(lambda a: a.reshape(*shape, *a.shape[1:]), points)
            steps, last = Steps(first, CHUNK, total, self.learning_rate), maps
            maps, state, losses, is_finite = descend(
                maps, state, chunk, loss, steps, optimizer=OPTIMIZER
            )
            if not is_finite:
                what = f"training diverged (NaN or inf) after step {first}"
                raise DivergedError(f"{what}: try a smaller learning_rate", last)
            history.append({"step": first + CHUNK, "loss": float(losses) / CHUNK})
            notify(Progress("training", first + CHUNK, total, float(losses) / CHUNK))
        return maps

    def _fresh(self, problem: EigenProblem) -> ScalarMap:
        """Fresh maps whose first layers are 1 to k^(1/d)/2 times as steep as usual.

        k modes in d dimensions oscillate about k^(1/d) times along each axis.
        """
        n_inputs = problem.inputs(jnp.asarray(problem.domain.sobol(0)(1).x)).shape[1]
        shape = n_inputs, self.hidden, self.activation
        streams = (generator(self.random_state, k) for k in range(self._n_maps))
        net = stack([init_map(random, *shape) for random in streams]).net
        steepest = max(1.0, 0.5 * self.n_eigenpairs ** (1 / problem.dimension))
        gains = jnp.asarray(np.geomspace(1, steepest, self._n_maps))
        weights = gains[:, None, None] * net.weights[0], *net.weights[1:]
        biases = gains[:, None] * net.biases[0], *net.biases[1:]
        return ScalarMap(MLP(weights, biases, self.activation))

    def _ritz_step(
        self, problem: EigenProblem, maps: ScalarMap, sets: list[Points], notify: Callback
    ) -> tuple[galerkin.Pairs, np.ndarray, np.ndarray]:
        """The eigenpairs, their error bars, and their Gram matrix over other points.

        A rule is checked by a coarser one, several sets by leaving each of them out.
        """
        parts = []
        for done, points in enumerate(sets):
            notify(Progress("Ritz step", done, len(sets) + 1))
            parts.append(galerkin.assemble(problem, maps, points))
        if len(sets) > 1:
            pairs, error_bars = galerkin.jackknife(parts, self.n_eigenpairs)
            return pairs, error_bars, pairs.coefficients.T @ parts[0].gram @ pairs.coefficients
        pairs = galerkin.solve(parts[0], self.n_eigenpairs)
        n_fewer = max(2, int(0.75 * self.n_points))
        coarser = problem.domain.quadrature(n_fewer) or problem.domain.sobol(0)(self.n_points)
        dirichlet, gram = galerkin.assemble(problem, maps, coarser, pairs.coefficients)
        return pairs, np.abs(np.diag(dirichlet) / np.diag(gram) - pairs.values), gram
