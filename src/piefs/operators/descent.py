"""Training K maps so that their span has the lowest sum of Ritz values, tr(G⁻¹D).

By the min-max principle that sum is never below λ_1 + … + λ_K, and only the lowest eigenspaces
reach it, in any basis: degenerate eigenvalues are no trouble. `joint` trains all maps at once;
`sequential` one after the other, the trained ones frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
CHUNK = 32


def ritz_sum(dirichlet: Array, gram: Array) -> Array:
    """tr(G⁻¹D), the sum of all Ritz values of the span."""
    scale = jax.lax.stop_gradient(1 / jnp.sqrt(jnp.diag(gram)))
    gram = scale[:, None] * gram * scale + JITTER * jnp.eye(len(gram))
    factor = jax.scipy.linalg.cho_factor(gram)
    return jnp.trace(jax.scipy.linalg.cho_solve(factor, scale[:, None] * dirichlet * scale))


class RitzLoss(eqx.Module):
    """The sum of the Ritz values on a batch: of all maps, or of one and the k frozen functions.

    A batch is points and, with frozen functions, K columns of their values (n, K) and gradients
    (n, K, d), of which those from k on are masked.
    """

    problem: EigenProblem = eqx.field(static=True)
    k: int | Array

    def __call__(
        self, maps: ScalarMap, batch: tuple[Points, Any], _: object = None
    ) -> tuple[Array, Array]:
        """The sum, as the value and as the record."""
        (points, frozen), k = batch, self.k
        value, gradient = outputs(self.problem, maps, jnp.asarray(points.x))
        if frozen is not None:
            value = frozen[0].at[:, k].set(value[:, 0])
            gradient = frozen[1].at[:, k].set(gradient[:, 0])
        weight = jnp.asarray(points.weight) / jnp.sum(points.weight)
        if self.problem.keeps_constants:  # the parts orthogonal to the constant count
            value = value - weight @ value
        dirichlet, gram = forms(self.problem, jnp.asarray(points.x), weight, value, gradient)
        active = (jnp.arange(len(gram)) <= k).astype(gram.dtype)
        mask = active[:, None] * active
        loss = ritz_sum(mask * dirichlet, mask * gram + jnp.diag(1 - active))
        return loss, loss


@dataclass(frozen=True)
class Descent:
    """How maps are trained: so many steps (a multiple of CHUNK), on so many points each.

    `draw` gives fresh points; `watch` gets the step and the mean loss of each chunk of steps.
    """

    problem: EigenProblem
    draw: Callable[[int], Points]
    watch: Callable[[int, float], None]
    n_steps: int
    batch_size: int
    learning_rate: float

    def joint(self, maps: ScalarMap) -> ScalarMap:
        """All maps at once, on fresh points at every step."""
        loss = RitzLoss(self.problem, n_maps(maps))
        return self._descended(maps, lambda: self._cut((self._points(), None)), loss)

    def sequential(self, maps: ScalarMap) -> ScalarMap:
        """One map after the other on a fixed pool of points, the frozen ones cached there.

        Map k then minimises its Rayleigh quotient in the complement of the frozen ones. The cache
        is orthonormal over the pool, so deflation stays well conditioned for any number of modes.
        """
        pool, total = self._points(), n_maps(maps)
        n, weight = len(pool.x), pool.weight / pool.weight.sum()
        value, gradient = np.zeros((n, total)), np.zeros((n, total, self.problem.dimension))
        evaluate, trained = jax.jit(outputs, static_argnums=0), []
        for k, phi in enumerate(unstack(maps)):
            chunk, loss = (
                self._cut((pool, (value, gradient))),
                RitzLoss(self.problem, jnp.asarray(k)),
            )
            own = self._descended(stack([phi]), lambda chunk=chunk: chunk, loss, k * self.n_steps)
            trained.append(unstack(own)[0])
            live = evaluate(self.problem, own, jnp.asarray(pool.x))
            value, gradient = value.copy(), gradient.copy()  # a chunk may share their memory
            value[:, k], gradient[:, k] = live[0][:, 0], live[1][:, 0]
            if self.problem.keeps_constants:
                value[:, k] -= weight @ value[:, k]
            seen = value[:, : k + 1]
            mixing = whitening(seen.T @ (weight[:, None] * seen)).mixing[k]
            value[:, k] = seen @ mixing
            gradient[:, k] = np.einsum("njd,j->nd", gradient[:, : k + 1], mixing)
        return stack(trained)

    def _points(self) -> Points:
        return self.problem.measured(self.draw(CHUNK * self.batch_size))

    def _cut(self, rows: Any) -> Any:
        """(chunk · batch, …) → (chunk, batch, …) for all arrays of a tree."""
        shape = CHUNK, self.batch_size
        return jax.tree.map(lambda a: jnp.asarray(a).reshape(*shape, *a.shape[1:]), rows)

    def _descended(
        self, maps: ScalarMap, chunk: Callable[[], Any], loss: RitzLoss, before: int = 0
    ) -> ScalarMap:
        """The maps after all chunks of steps, `before` having been taken for other maps."""
        state = begun(OPTIMIZER, maps)
        for first in range(0, self.n_steps, CHUNK):
            steps = Steps(first, CHUNK, self.n_steps, self.learning_rate)
            last = maps
            maps, state, total, is_finite = descend(
                maps, state, chunk(), loss, steps, optimizer=OPTIMIZER
            )
            if not is_finite:
                raise DivergedError(
                    f"training diverged (NaN or inf) after step {first}: try a smaller "
                    "learning_rate",
                    last,
                )
            self.watch(before + first + CHUNK, float(total) / CHUNK)
        return maps
