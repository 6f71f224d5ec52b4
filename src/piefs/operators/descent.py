"""Training K maps so that their span has the lowest sum of Ritz values, tr(G⁻¹D).

By the min-max principle that sum is never below λ_1 + … + λ_K, and it is reached by the lowest
eigenspaces alone, whatever basis of them the maps happen to be: degenerate eigenvalues are no
trouble. `joint` trains all maps at once; `sequential` one after the other, the trained ones frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.losses import active_identity
from piefs.core.maps import ScalarMap, n_maps, stack, unstack
from piefs.core.ritz import whitening
from piefs.operators.domains import Points
from piefs.operators.problem import EigenProblem
from piefs.operators.trial import forms, outputs
from piefs.training.config import Optimizer
from piefs.training.step import begun, moved, rate_at

JITTER = 1e-11
"""Added to the normalised Gram matrix, lest two maps that coincide stop the training."""

OPTIMIZER = Optimizer("adam", warmup=0.05)

Watch = Callable[[int, float], None]


class Budget(NamedTuple):
    """How long to train (a multiple of `chunk`), on how many points a step, and how fast."""

    n_steps: int
    batch_size: int
    learning_rate: float
    chunk: int


class Columns(NamedTuple):
    """Functions on points: values (n, K) and gradients (n, K, d)."""

    value: Any
    gradient: Any


def ritz_sum(dirichlet: Array, gram: Array) -> Array:
    """tr(G⁻¹D), the sum of all Ritz values of the span."""
    scale = jax.lax.stop_gradient(1 / jnp.sqrt(jnp.diag(gram)))
    gram = scale[:, None] * gram * scale + JITTER * jnp.eye(len(gram))
    factor = jax.scipy.linalg.cho_factor(gram)
    return jnp.trace(jax.scipy.linalg.cho_solve(factor, scale[:, None] * dirichlet * scale))


def _forms(problem: EigenProblem, columns: Columns, x: Array, weight: Array) -> tuple[Array, Array]:
    """D and G on a batch; where the constant is an eigenfunction, of the parts orthogonal to it."""
    weight = weight / jnp.sum(weight)
    value = columns.value
    if problem.keeps_constants:
        value = value - weight @ value
    return forms(problem, x, weight, value, columns.gradient)


def joint(
    problem: EigenProblem,
    maps: ScalarMap,
    draw: Callable[[int], Points],
    budget: Budget,
    watch: Watch,
) -> ScalarMap:
    """All maps at once, on fresh points at every step."""

    def loss(maps: ScalarMap, x: Array, weight: Array) -> Array:
        return ritz_sum(*_forms(problem, Columns(*outputs(problem, maps, x)), x, weight))

    def batches() -> tuple[Array, Array]:
        return _batches(problem.measured(draw(budget.chunk * budget.batch_size)), budget)

    return _descend(_stepper(loss, budget), maps, batches, budget, watch)


def sequential(
    problem: EigenProblem,
    maps: ScalarMap,
    draw: Callable[[int], Points],
    budget: Budget,
    watch: Watch,
) -> ScalarMap:
    """One map after the other on a fixed pool of points, the frozen ones cached there.

    Map k minimises the sum of the k Ritz values of the span of itself and the frozen ones, which
    is its Rayleigh quotient in their complement. The cache is orthonormal over the pool, so that
    deflation stays well conditioned, however many modes there are.
    """
    pool = problem.measured(draw(budget.chunk * budget.batch_size))
    n, total = len(pool.x), n_maps(maps)
    frozen = Columns(np.zeros((n, total)), np.zeros((n, total, problem.dimension)))
    stepper, trained = _stepper(partial(_deflated, problem), budget), []
    evaluate = jax.jit(partial(outputs, problem))
    for k, phi in enumerate(unstack(maps)):
        order = jnp.full(budget.chunk, k)
        cached = (*_batches(pool, budget), *(_cut(part, budget) for part in frozen), order)

        def watch_map(step: int, loss: float, k: int = k) -> None:
            watch(k * budget.n_steps + step, loss)

        own = _descend(stepper, stack([phi]), lambda c=cached: c, budget, watch_map)
        trained.append(unstack(own)[0])
        live = Columns(*evaluate(own, jnp.asarray(pool.x)))
        frozen = _freeze(frozen, live, pool.weight, k, centre=problem.keeps_constants)
    return stack(trained)


def _deflated(
    problem: EigenProblem,
    phi: ScalarMap,
    x: Array,
    weight: Array,
    value: Array,
    gradient: Array,
    k: Array,
) -> Array:
    """The sum of the Ritz values of k frozen columns and one live map; the rest is masked."""
    live = outputs(problem, phi, x)
    columns = Columns(value.at[:, k].set(live[0][:, 0]), gradient.at[:, k].set(live[1][:, 0]))
    dirichlet, gram = _forms(problem, columns, x, weight)
    size = gram.shape[0]
    active = jnp.diag(active_identity(size, k + 1))
    mask = active[:, None] * active
    return ritz_sum(mask * dirichlet, mask * gram + jnp.diag(1 - active))


def _freeze(frozen: Columns, live: Columns, weight: np.ndarray, k: int, *, centre: bool) -> Columns:
    """The cache with map k in it, made orthonormal to the others over the pool."""
    value, gradient = np.array(frozen.value), np.array(frozen.gradient)
    value[:, k], gradient[:, k] = live.value[:, 0], live.gradient[:, 0]
    weight = weight / weight.sum()
    if centre:
        value[:, k] -= weight @ value[:, k]
    mixing = whitening(value[:, : k + 1].T @ (weight[:, None] * value[:, : k + 1])).mixing
    value[:, k] = value[:, : k + 1] @ mixing[k]
    gradient[:, k] = np.einsum("njd,j->nd", gradient[:, : k + 1], mixing[k])
    return Columns(value, gradient)


def _cut(rows: Array | np.ndarray, budget: Budget) -> Array:
    """(chunk · batch, …) → (chunk, batch, …)."""
    return jnp.asarray(rows).reshape(budget.chunk, budget.batch_size, *rows.shape[1:])


def _batches(points: Points, budget: Budget) -> tuple[Array, Array]:
    return _cut(points.x, budget), _cut(points.weight, budget)


def _stepper(loss: Callable[..., Array], budget: Budget) -> Callable[..., tuple]:
    """A compiled chunk of Adam's steps; the rate rises briefly and falls as a cosine."""

    @jax.jit
    def run(maps: ScalarMap, state: Any, first: Array, inputs: tuple) -> tuple:
        def step(carry: tuple, inputs: tuple) -> tuple:
            maps, state = carry
            i, *batch = inputs
            value, slope = jax.value_and_grad(loss)(maps, *batch)
            rate = rate_at(OPTIMIZER, budget.learning_rate, i, budget.n_steps)
            return moved(OPTIMIZER, maps, slope, state, rate), value

        numbers = first + jnp.arange(budget.chunk)
        (maps, state), values = jax.lax.scan(step, (maps, state), (numbers, *inputs))
        return maps, state, jnp.mean(values)

    return run


def _descend(
    run: Callable[..., tuple],
    maps: ScalarMap,
    batches: Callable[[], tuple],
    budget: Budget,
    watch: Watch,
) -> ScalarMap:
    """All chunks of steps; `watch` hears of each chunk's mean loss."""
    state = begun(OPTIMIZER, maps)
    for first in range(0, budget.n_steps, budget.chunk):
        maps, state, value = run(maps, state, jnp.asarray(first), batches())
        if not np.isfinite(value):
            raise FloatingPointError("training diverged: try a smaller learning_rate")
        watch(first + budget.chunk, float(value))
    return maps
