"""One-dimensional quadrature rules and their products."""

import numpy as np

FEWEST = 6
"""A product rule with fewer nodes a coordinate is no match for quasi-random points."""
MOST = {"legendre": 200, "hermite": 120}
"""Nodes a coordinate beyond which a rule gains nothing (or its weights underflow)."""


def tensor_rule(family: str, n_points: int, dimension: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Nodes (n, d) and weights (n,) that sum to one, n ≤ `n_points`; None where that is too few.

    `legendre` integrates over [−1, 1]ᵈ with the uniform measure, `hermite` over ℝᵈ with N(0, I).
    """
    order = min(int(round(n_points ** (1 / dimension), 9)), MOST[family])
    if order < FEWEST:
        return None
    make = {
        "legendre": np.polynomial.legendre.leggauss,
        "hermite": np.polynomial.hermite_e.hermegauss,
    }[family]
    nodes, weight = make(order)
    weight = weight / weight.sum()
    grid = np.meshgrid(*[nodes] * dimension, indexing="ij")
    weights = weight
    for _ in range(dimension - 1):
        weights = np.multiply.outer(weights, weight)
    return np.stack(grid, axis=-1).reshape(-1, dimension), weights.reshape(-1)
