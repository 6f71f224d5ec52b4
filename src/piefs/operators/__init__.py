"""Explicit operators: eigenvalue problems, a solver for them, and problems of known spectrum.

>>> from piefs.operators import Box, EigenProblem, EigenSolver
>>> string = EigenProblem(Box([0.0], [1.0]), boundary="dirichlet")
>>> solution = EigenSolver(n_eigenpairs=2, n_maps=2, n_steps=0, n_points=100).solve(string)
>>> (solution.eigenvalues / 3.141592653589793**2).round(4).tolist()
[1.0, 4.0]
"""

from piefs.operators.domains import Ball, Box, Domain, Ellipsoid, Gaussian, Points, Radial, Sphere
from piefs.operators.known import PROBLEMS, Known, known
from piefs.operators.problem import EigenProblem, lebesgue
from piefs.operators.shapes import BumpBox, Implicit, PointCloud
from piefs.operators.solution import EigenSolution, clusters, principal_angles
from piefs.operators.solver import EigenSolver, Progress

__all__ = [
    "PROBLEMS",
    "Ball",
    "Box",
    "BumpBox",
    "Domain",
    "EigenProblem",
    "EigenSolution",
    "EigenSolver",
    "Ellipsoid",
    "Gaussian",
    "Implicit",
    "Known",
    "PointCloud",
    "Points",
    "Progress",
    "Radial",
    "Sphere",
    "clusters",
    "known",
    "lebesgue",
    "principal_angles",
]
