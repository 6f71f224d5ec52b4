"""Training K maps so that their span has the lowest sum of Ritz values, tr(G⁻¹D).

By the min-max principle that sum is never below λ_1 + … + λ_K, and only the lowest eigenspaces
reach it, in any basis: degenerate eigenvalues are no trouble. `joint` trains all maps at once;
`sequential` one after the other, the trained ones frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.maps import ScalarMap, n_maps, stack, unstack
from piefs.core.ritz import whitening
from piefs.errors import DivergedError
from piefs.operators.domains import Points
from piefs.operators.problem import EigenProblem
from piefs.operators.trial import forms, outputs
from piefs.training.config import Optimizer
from piefs.training.step import Steps, begun, descend

JITTER = 1e-11
"""Added to the normalised Gram matrix, so that two equal maps do not stop the training."""

OPTIMIZER = Optimizer("adam", warmup=0.05)

Watch = Callable[[int, float], None]


class Budget(NamedTuple):
    """How many steps (a multiple of `chunk`), on how many points each, and how fast."""

    n_steps: int
    batch_size: int
    learning_rate: float
    chunk: int


class FunctionValues(NamedTuple):
    """Functions on points: values (n, K) and gradients (n, K, d)."""

    value: Any
    gradient: Any


def ritz_sum(dirichlet: Array, gram: Array) -> Array:
    """tr(G⁻¹D), the sum of all Ritz values of the span."""
    scale = jax.lax.stop_gradient(1 / jnp.sqrt(jnp.diag(gram)))
    gram = scale[:, None] * gram * scale + JITTER * jnp.eye(len(gram))
    factor = jax.scipy.linalg.cho_factor(gram)
    return jnp.trace(jax.scipy.linalg.cho_solve(factor, scale[:, None] * dirichlet * scale))


def _forms(problem: EigenProblem, functions: FunctionValues, points: Points) -> tuple[Array, Array]:
    """D and G on a batch; if the constant is an eigenfunction, of the parts orthogonal to it."""
    weight = jnp.asarray(points.weight) / jnp.sum(points.weight)
    value = functions.value
    if problem.keeps_constants:
        value = value - weight @ value
    return forms(problem, jnp.asarray(points.x), weight, value, functions.gradient)


class RitzLoss(eqx.Module):
    """The sum of the Ritz values on a batch: of all maps, or of one and the k frozen functions.

    With frozen functions, a batch has K of them, of which those from k on are masked.
    """

    problem: EigenProblem = eqx.field(static=True)
    k: Any = 0

    def __call__(
        self, maps: ScalarMap, batch: tuple[Points, FunctionValues | None], _: object = None
    ) -> tuple[Array, Array]:
        """The sum, as the value and as the record."""
        (points, frozen), k = batch, self.k
        functions = FunctionValues(*outputs(self.problem, maps, jnp.asarray(points.x)))
        if frozen is None:
            loss = ritz_sum(*_forms(self.problem, functions, points))
            return loss, loss
        pairs = zip(frozen, functions, strict=True)
        functions = FunctionValues(*(old.at[:, k].set(new[:, 0]) for old, new in pairs))
        dirichlet, gram = _forms(self.problem, functions, points)
        active = (jnp.arange(len(gram)) <= k).astype(gram.dtype)
        mask = active[:, None] * active
        loss = ritz_sum(mask * dirichlet, mask * gram + jnp.diag(1 - active))
        return loss, loss


def joint(
    problem: EigenProblem,
    maps: ScalarMap,
    draw: Callable[[int], Points],
    budget: Budget,
    watch: Watch,
) -> ScalarMap:
    """All maps at once, on fresh points at every step."""

    def chunk() -> Any:
        return _cut((problem.measured(draw(budget.chunk * budget.batch_size)), None), budget)

    return _descended(maps, chunk, RitzLoss(problem), budget, watch)


def sequential(
    problem: EigenProblem,
    maps: ScalarMap,
    draw: Callable[[int], Points],
    budget: Budget,
    watch: Watch,
) -> ScalarMap:
    """One map after the other on a fixed pool of points, the frozen ones cached there.

    Map k then minimises its Rayleigh quotient in the complement of the frozen ones. The cache is
    orthonormal over the pool, so that deflation stays well conditioned for any number of modes.
    """
    pool = problem.measured(draw(budget.chunk * budget.batch_size))
    n, total = len(pool.x), n_maps(maps)
    frozen = FunctionValues(np.zeros((n, total)), np.zeros((n, total, problem.dimension)))
    evaluate, trained = jax.jit(outputs, static_argnums=0), []
    for k, phi in enumerate(unstack(maps)):
        chunk = _cut((pool, frozen), budget)

        def watch_map(step: int, loss: float, k: int = k) -> None:
            watch(k * budget.n_steps + step, loss)

        loss = RitzLoss(problem, jnp.asarray(k))
        own = _descended(stack([phi]), lambda chunk=chunk: chunk, loss, budget, watch_map)
        trained.append(unstack(own)[0])
        live = FunctionValues(*evaluate(problem, own, jnp.asarray(pool.x)))
        frozen = _freeze(frozen, live, pool.weight, k, centre=problem.keeps_constants)
    return stack(trained)


def _freeze(
    frozen: FunctionValues, live: FunctionValues, weight: np.ndarray, k: int, *, centre: bool
) -> FunctionValues:
    """The cache with map k in it, made orthonormal to the others over the pool."""
    value, gradient = np.array(frozen.value), np.array(frozen.gradient)
    value[:, k], gradient[:, k] = live.value[:, 0], live.gradient[:, 0]
    weight = weight / weight.sum()
    if centre:
        value[:, k] -= weight @ value[:, k]
    mixing = whitening(value[:, : k + 1].T @ (weight[:, None] * value[:, : k + 1])).mixing
    value[:, k] = value[:, : k + 1] @ mixing[k]
    gradient[:, k] = np.einsum("njd,j->nd", gradient[:, : k + 1], mixing[k])
    return FunctionValues(value, gradient)


def _cut(rows: Any, budget: Budget) -> Any:
    """(chunk · batch, …) → (chunk, batch, …) for all arrays of a tree."""
    shape = budget.chunk, budget.batch_size
    return jax.tree.map(lambda a: jnp.asarray(a).reshape(*shape, *a.shape[1:]), rows)


def _descended(
    maps: ScalarMap, chunk: Callable[[], Any], loss: Any, budget: Budget, watch: Watch
) -> ScalarMap:
    """The maps after all chunks of steps; `watch` gets each chunk's mean loss."""
    state = begun(OPTIMIZER, maps)
    for first in range(0, budget.n_steps, budget.chunk):
        steps = Steps(first, budget.chunk, budget.n_steps, budget.learning_rate)
        before = maps
        maps, state, total, is_finite = descend(
            maps, state, chunk(), loss, steps, optimizer=OPTIMIZER
        )
        if not is_finite:
            raise DivergedError(
                f"training diverged (NaN or inf) after step {first}: try a smaller learning_rate",
                before,
            )
        watch(first + budget.chunk, float(total) / budget.chunk)
    return maps
