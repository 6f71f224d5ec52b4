"""
A drum of one's own
===================

The same maps solve −Δφ + Vφ = λφ: here the modes of an elliptic membrane with a soft spot, zero
on the rim.
"""

# %%
# A domain is where a function is positive; the potential is any function of the point.

import jax.numpy as jnp
import numpy as np
from matplotlib import pyplot as plt

from piefs.operators import EigenProblem, EigenSolver, Implicit

drum = EigenProblem(
    Implicit(lambda x: 1 - (x[:, 0] / 2) ** 2 - x[:, 1] ** 2, low=[-2, -1], high=[2, 1]),
    potential=lambda x: -20 * jnp.exp(-4 * jnp.sum((x - 0.3) ** 2, axis=1)),
    boundary="dirichlet",
)
solution = EigenSolver(n_eigenpairs=4, n_maps=4, n_steps=128, n_points=2**13).solve(drum)
for value, bar, residual in zip(
    solution.eigenvalues, solution.error_bars, solution.residuals, strict=True
):
    print(f"λ = {value:7.3f} ± {bar:.3f}, residual {residual:.3f}")

# %%
# The modes are functions: evaluate them anywhere.

first, second = np.meshgrid(np.linspace(-2, 2, 160), np.linspace(-1, 1, 80))
points = np.stack([first.ravel(), second.ravel()], axis=1)
inside = (points[:, 0] / 2) ** 2 + points[:, 1] ** 2 < 1
modes = np.where(inside[:, None], solution(points), np.nan).reshape(80, 160, 4)
figure, axes = plt.subplots(2, 2, figsize=(9, 4.6))
for k, ax in enumerate(axes.flat):
    bound = np.nanmax(np.abs(modes[..., k]))
    ax.imshow(
        modes[..., k], origin="lower", extent=(-2, 2, -1, 1), cmap="RdBu_r", vmin=-bound, vmax=bound
    )
    ax.set(title=f"λ = {solution.eigenvalues[k]:.2f}", xticks=[], yticks=[])
figure.tight_layout()
plt.show()
