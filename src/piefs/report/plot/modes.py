"""Pictures of eigenfunctions: curves on a line, heatmaps in the plane, globes on the sphere."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from piefs.core.maps import n_maps
from piefs.data.files import write_with
from piefs.operators.domains import Sphere
from piefs.operators.solution import EigenSolution
from piefs.report.plot.style import CLASS_COLORS, FAINT, GUIDE, SIGNED_COLORS, STYLE, class_color

MOST_MODES = 16
N_LINE, N_GRID = 400, 161


def draw(solution: EigenSolution, folder: Path) -> None:
    """Write modes.png and, if there was training, training.png."""
    with mpl.rc_context(STYLE):
        figures = {"modes.png": modes(solution)}
        if solution.history:
            figures["training.png"] = training(solution)
    for name, figure in figures.items():
        write_with(folder / name, lambda path, figure=figure: figure.savefig(path))
        plt.close(figure)


def modes(solution: EigenSolution) -> Figure:
    """The first eigenfunctions; beyond two dimensions, slices through the middle."""
    if solution.problem.dimension == 1:
        return _curves(solution)
    n = min(len(solution), MOST_MODES)
    n_columns = n if n <= 4 else min((5, 4, 3), key=lambda c: -n % c)  # the fewest gaps
    n_rows = -(-n // n_columns)
    is_sphere = isinstance(solution.problem.domain, Sphere) and solution.problem.dimension == 3
    points, is_inside, extent = _globe() if is_sphere else _plane(solution)
    surface = np.where(is_inside[:, None], solution(points), np.nan).reshape(N_GRID, N_GRID, -1)
    aspect = np.clip((extent[3] - extent[2]) / (extent[1] - extent[0]), 0.3, 3)
    size = (2.1 * n_columns, (2.0 * aspect + 0.25) * n_rows)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=size, squeeze=False, layout="constrained"
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for j, ax in enumerate(axes.flat[:n]):
        bound = np.nanmax(np.abs(surface[..., j])) or 1.0
        look: Any = {"cmap": SIGNED_COLORS, "vmin": -bound, "vmax": bound}
        ax.imshow(surface[..., j], origin="lower", extent=extent, interpolation="bilinear", **look)
        ax.set_aspect("equal")
        ax.set_title(f"$\\lambda_{{{j + 1}}}$ = {_short(solution.eigenvalues[j])}", fontsize=10)
    rest = solution.problem.dimension - 2
    note = f"the plane of $x_1$ and $x_2$, the other {rest} in the middle" if rest else ""
    note = "one half of the sphere, seen from the front" if is_sphere else note
    if note:
        figure.suptitle(note, fontsize=9, color=GUIDE)
    return figure


def _short(value: float) -> str:
    """Five digits; values within the solver's error of zero are shown as 0."""
    return "0" if abs(value) < 1e-6 else f"{value:.5g}"


def _grid(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, tuple]:
    """Points in the plane, and the extent of their grid."""
    first, second = (np.linspace(low[i], high[i], N_GRID) for i in (0, 1))
    rows = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    return rows, (low[0], high[0], low[1], high[1])


def _plane(solution: EigenSolution) -> tuple[np.ndarray, np.ndarray, tuple]:
    """A grid of the first two coordinates, the others in the middle; what is inside; its extent."""
    domain = solution.problem.domain
    low, high = domain.bounds()
    rows, extent = _grid(low, high)
    middle = np.broadcast_to((low + high)[2:] / 2, (len(rows), len(low) - 2))
    x, is_inside = np.concatenate([rows, middle], axis=1), np.ones(len(rows), bool)
    if solution.problem.boundary == "dirichlet":
        with jax.enable_x64(True):
            is_inside = np.asarray(domain.distance(jnp.asarray(x))) >= 0
    return x, is_inside, extent


def _globe() -> tuple[np.ndarray, np.ndarray, tuple]:
    """The front of the sphere in orthographic projection, tilted so that the pole shows."""
    rows, extent = _grid(-np.ones(2), np.ones(2))
    across, up = rows.T
    depth = np.sqrt(np.maximum(0, 1 - across**2 - up**2))
    cos, sin = np.cos(np.deg2rad(25)), np.sin(np.deg2rad(25))
    x = np.stack([depth * cos - up * sin, across, depth * sin + up * cos], axis=1)
    return x, across**2 + up**2 < 1, extent


def _curves(solution: EigenSolution) -> Figure:
    """Each function around the height of its number, scaled to one size."""
    low, high = solution.problem.domain.bounds()
    x = np.linspace(low[0], high[0], N_LINE)
    values = solution(x[:, None])[:, :MOST_MODES]
    figure, ax = plt.subplots(figsize=(5.6, 0.55 * values.shape[1] + 1.2), layout="constrained")
    for j, column in enumerate(values.T):
        sign = np.sign(column[np.abs(column) > 0.05 * np.abs(column).max()][0])
        ax.axhline(j, color=FAINT, linewidth=0.8, zorder=0)
        ax.plot(x, j + 0.42 * sign * column / np.abs(column).max(), color=class_color(j))
    names = [f"$\\lambda_{{{j + 1}}}$ = {_short(v)}" for j, v in enumerate(solution.eigenvalues)]
    ax.set_yticks(range(values.shape[1]), names[: values.shape[1]])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(xlabel="$x$", xlim=(low[0], high[0]))
    return figure


def training(solution: EigenSolution) -> Figure:
    """The sum of Ritz values while training, beside the exact sum if it is known."""
    figure, ax = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
    steps, loss = ([row[name] for row in solution.history] for name in ("step", "loss"))
    marker = "o" if len(steps) < 4 else ""
    ax.plot(steps, loss, marker=marker, color=CLASS_COLORS[0], label="trained maps, fresh points")
    problem = solution.problem
    if problem.exact is not None:
        target = np.sum(problem.exact(n_maps(solution.maps) + problem.keeps_constants))
        ax.axhline(target, color=GUIDE, linewidth=1, linestyle="--", label="exact")
        ax.legend()
    ax.set(xlabel="training step", ylabel="sum of Ritz values")
    return figure
