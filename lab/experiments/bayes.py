"""The best that can be done on Two Moons and Circles: Bayes' rule, from their exact densities.

A row is a point on a curve, uniform in its parameter, plus Gaussian noise. The density of a class
is the Gaussian averaged over its curve, here by the midpoint rule; that of one coordinate is the
same with the curve projected onto it.

    python -m lab.experiments.bayes

prints how far a single coordinate gets.
"""

import numpy as np
from scipy.special import logsumexp

BOTH = (0, 1)
N_NODES = 200  # a fraction of the noise apart: the midpoint rule is exact to rounding then
BLOCK_ROWS = 2000


def curves(dataset: str) -> tuple[np.ndarray, np.ndarray, float]:
    """The curves of class 0 and class 1, as points, and the noise's standard deviation."""
    t = (np.arange(N_NODES) + 0.5) / N_NODES
    if dataset == "two-moons":
        angle = np.pi * t
        upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
        return upper, lower, 0.1
    angle = 2 * np.pi * t
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return circle, 0.5 * circle, 0.05


def log_densities(dataset: str, x: np.ndarray, coordinates: tuple[int, ...] = BOTH) -> np.ndarray:
    """log p(x | class) up to a constant that both share, shape (n, 2), of some coordinates."""
    *classes, sigma = curves(dataset)
    columns = []
    for curve in classes:
        nodes, parts = curve[None, :, coordinates], []
        for start in range(0, len(x), BLOCK_ROWS):
            block = x[start : start + BLOCK_ROWS, None, coordinates]
            squared = ((block - nodes) ** 2).sum(axis=2)
            parts.append(logsumexp(-squared / (2 * sigma**2), axis=1))
        columns.append(np.concatenate(parts))
    return np.stack(columns, axis=1)


def bayes_accuracy(
    dataset: str, x: np.ndarray, y: np.ndarray, coordinates: tuple[int, ...] = BOTH
) -> float:
    """The accuracy of Bayes' rule on these rows, where it sees some of their coordinates."""
    return float(np.mean(log_densities(dataset, x, coordinates).argmax(axis=1) == y))


def accuracy_of_one(dataset: str, coordinate: int) -> float:
    """∫ ½ max_l p(t | l) dt: the most that a function of one coordinate t can reach."""
    t = np.linspace(-3, 4, 14_001)
    points = np.zeros((len(t), 2))
    points[:, coordinate] = t
    densities = np.exp(log_densities(dataset, points, (coordinate,)))
    return float(densities.max(axis=1).sum() / densities.sum())


if __name__ == "__main__":
    for name in ("two-moons", "circles"):
        best = (f"{100 * accuracy_of_one(name, i):.2f} % by x{i + 1} alone" for i in BOTH)
        print(f"{name}: {', '.join(best)}")
