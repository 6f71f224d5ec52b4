"""How near each rotation family comes to a given random rotation, by its number of parameters.

`python -m lab.benchmarks expressivity`. One U for all points, fitted to Haar-random rotations R of
ℝ¹⁶ by Adam on ‖U − R‖²; the error is ‖U − R‖_F/√(2d), which is 1 for an unrelated rotation.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from scipy.stats import special_ortho_group

from piefs.core.rotations import Rotation, make_rotation, rotate

D, N_TARGETS, N_STEPS, RATE = 16, 4, 1500, 0.05

SIZES: dict[str, tuple[int | None, ...]] = {
    "trotter": (None,),
    "chain": (None,),
    "butterfly": (1, 2, 4),
    "cayley": (1, 2, 4),
}


@partial(jax.jit, static_argnames="family")
def fit(family: Rotation, target: Array, start: Array) -> Array:
    """The error of the family's best member after N_STEPS steps from near the identity."""

    def error(outputs: Array) -> Array:
        (parameters,) = family.squash((outputs[None],))
        return jnp.sum((rotate(family, parameters, jnp.eye(D)).T - target) ** 2)

    optimizer = optax.adam(optax.cosine_decay_schedule(RATE, N_STEPS))

    def step(carry: tuple, _: None) -> tuple:
        outputs, state = carry
        updates, state = optimizer.update(jax.grad(error)(outputs), state)
        return (optax.apply_updates(outputs, updates), state), None

    (outputs, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), length=N_STEPS)
    return jnp.sqrt(error(outputs) / (2 * D))


def run() -> dict[str, object]:
    """The mean error over targets, one row a family and size."""
    targets = special_ortho_group.rvs(D, size=N_TARGETS, random_state=0).astype(np.float32)
    rng, rows = np.random.default_rng(0), []
    for name, depths in SIZES.items():
        for depth in depths:
            family = make_rotation(name, depth)
            n = family.n_parameters(D)
            starts = 0.01 * rng.standard_normal((N_TARGETS, n), dtype=np.float32)
            errors = [float(fit(family, r, s)) for r, s in zip(targets, starts, strict=True)]
            row = {"name": name, "depth": depth, "parameters": n}
            rows.append(row | {"error": round(float(np.mean(errors)), 4)})
            print(f"  {rows[-1]}", flush=True)
    return {"d": D, "n_targets": N_TARGETS, "n_steps": N_STEPS, "rows": rows}
