"""Problems of known spectrum: errors, angles and seconds, with finite elements beside them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import eigsh

from piefs.operators import EigenSolution, EigenSolver, clusters, known, principal_angles

SEED = 0
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("dirichlet-square", {}),
    ("dirichlet-box-5d", {}),
    ("dirichlet-box-10d", {}),
    ("oscillator-2d", {}),
    ("oscillator-5d", {}),
    ("ou-5d", {}),
    ("ou-10d", {}),
    ("hydrogen-2d", {}),
    ("sphere", {}),
    ("sphere", {"points": "sobol", "n_points": 2**16}),
    ("disk", {}),
    ("double-well", {}),
    ("variable-metric", {}),
)
UNTRAINED = ("dirichlet-square", "dirichlet-box-5d", "oscillator-5d", "ou-5d")
MESHES = ((1, 256), (2, 64), (2, 128), (3, 16), (3, 24))


def run() -> dict[str, object]:
    """Every case once, with the library's settings and one seed."""
    rows = [solved(name, settings) for name, settings in CASES]
    untrained = [solved(name, {"n_steps": 0}) for name in UNTRAINED]
    elements = [finite_elements(dimension, n) for dimension, n in MESHES]
    return {"seed": SEED, "rows": rows, "untrained": untrained, "finite_elements": elements}


def solved(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One problem: all relative errors, the largest angle to an exact eigenspace, and the cost."""
    found = known(name)
    chosen = {"n_eigenpairs": found.n_eigenpairs} | found.settings | settings
    wall, cpu = time.perf_counter(), time.process_time()
    solution = EigenSolver(**chosen, random_state=SEED).solve(found.problem)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    error = solution.relative_error
    assert error is not None
    print(f"  {name} {settings or ''}: {error.max():.1e} in {wall:.0f} s", flush=True)
    return {
        "problem": name,
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in chosen.items()},
        "points": solution.points,
        "relative_error": [float(f"{e:.2e}") for e in error],
        "integration_error": [float(f"{e:.1e}") for e in solution.error_bars],
        "residual": [float(f"{r:.1e}") for r in solution.residuals],
        "largest_angle": largest_angle(solution),
        "seconds": round(wall, 1),
        "cpu_seconds": round(cpu, 1),
    }


def largest_angle(solution: EigenSolution) -> float | None:
    """The largest principal angle to the exact eigenspaces that were found whole, in radians."""
    problem, k = solution.problem, len(solution)
    if problem.modes is None or problem.exact is None:
        return None
    points = problem.measured(problem.domain.sobol(SEED + 10)(2**13))
    ours, exact = solution(points.x), problem.modes(points.x, k)
    whole = [part for part in clusters(problem.exact(k + 1), 1e-6) if part.stop <= k]
    angles = [principal_angles(ours[:, p], exact[:, p], points.weight)[0] for p in whole]
    return float(f"{max(angles):.1e}")


def finite_elements(dimension: int, n: int, k: int = 4) -> dict[str, Any]:
    """−Δ on the unit cube, zero on the boundary, by multilinear elements on n cells a side."""
    begun = time.perf_counter()
    off, on = np.ones(n - 2), np.ones(n - 1)
    stiffness = n * sparse.diags([-off, 2 * on, -off], [-1, 0, 1])
    mass = sparse.diags([off, 4 * on, off], [-1, 0, 1]) / (6 * n)
    total = None
    for axis in range(dimension):
        term = sparse.identity(1)
        for other in range(dimension):
            term = sparse.kron(term, stiffness if other == axis else mass)
        total = term if total is None else total + term
    gram = sparse.identity(1)
    for _ in range(dimension):
        gram = sparse.kron(gram, mass)
    values = np.sort(eigsh(total.tocsc(), k, gram.tocsc(), sigma=0, return_eigenvectors=False))
    seconds = time.perf_counter() - begun
    exact = known_cube(dimension, k)
    return {
        "dimension": dimension,
        "unknowns": (n - 1) ** dimension,
        "relative_error": [float(f"{e:.1e}") for e in np.abs(values / exact - 1)],
        "seconds": round(seconds, 2),
    }


def known_cube(dimension: int, k: int) -> np.ndarray:
    """π² Σ n_i²."""
    from piefs.operators.exact import sines

    return sines(dimension).values(k)
