"""Training K maps so that their span has the lowest sum of Ritz values, tr(G⁻¹D).

By the min-max principle that sum is never below λ_1 + … + λ_K, and only the lowest eigenspaces
reach it, in any basis: degenerate eigenvalues are no trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from piefs.core.maps import ScalarMap
from piefs.errors import DivergedError
from piefs.operators.domains import Points
from piefs.operators.problem import EigenProblem
from piefs.operators.trial import forms, outputs
from piefs.training.config import Optimizer
from piefs.training.step import Steps, begun, descend

JITTER = 1e-11
"""Added to the normalised Gram matrix, so that two equal maps do not stop the training."""

OPTIMIZER = Optimizer("adam", warmup=0.05)
CHUNK = 32


def ritz_sum(dirichlet: Array, gram: Array) -> Array:
    """tr(G⁻¹D), the sum of all Ritz values of the span."""
    scale = jax.lax.stop_gradient(1 / jnp.sqrt(jnp.diag(gram)))
    gram = scale[:, None] * gram * scale + JITTER * jnp.eye(len(gram))
    factor = jax.scipy.linalg.cho_factor(gram)
    return jnp.trace(jax.scipy.linalg.cho_solve(factor, scale[:, None] * dirichlet * scale))


class RitzLoss(eqx.Module):
    """The sum of the Ritz values of all maps on a batch of points."""

    problem: EigenProblem = eqx.field(static=True)

    def __call__(self, maps: ScalarMap, points: Points, _: object = None) -> tuple[Array, Array]:
        """The sum, as the value and as the record."""
        x, weight = jnp.asarray(points.x), jnp.asarray(points.weight) / jnp.sum(points.weight)
        value, gradient = outputs(self.problem, maps, x)
        if self.problem.keeps_constants:  # the parts orthogonal to the constant count
            value = value - weight @ value
        loss = ritz_sum(*forms(self.problem, x, weight, value, gradient))
        return loss, loss


def descent(
    problem: EigenProblem,
    maps: ScalarMap,
    draw: Callable[[int], Points],
    n_steps: int,
    batch_size: int,
    learning_rate: float,
) -> Iterator[tuple[int, float, ScalarMap]]:
    """Train all maps at once, on fresh points at every step; steps are a multiple of CHUNK.

    After each chunk of steps: how many there were, their mean loss, and the maps.
    """
    state, loss = begun(OPTIMIZER, maps), RitzLoss(problem)
    for first in range(0, n_steps, CHUNK):
        points = problem.measured(draw(CHUNK * batch_size))
        chunk = jax.tree.map(lambda a: a.reshape(CHUNK, batch_size, *a.shape[1:]), points)
        steps, last = Steps(first, CHUNK, n_steps, learning_rate), maps
        maps, state, total, is_finite = descend(
            maps, state, chunk, loss, steps, optimizer=OPTIMIZER
        )
        if not is_finite:
            raise DivergedError(
                f"training diverged (NaN or inf) after step {first}: try a smaller learning_rate",
                last,
            )
        yield first + CHUNK, float(total) / CHUNK, maps
