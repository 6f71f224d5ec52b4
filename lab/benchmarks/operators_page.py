"""docs/operators-accuracy.md."""

from typing import Any

import numpy as np

from lab.benchmarks.results import ROOT, machine, table

PAGE = ROOT / "docs/operators-accuracy.md"
TARGET = 1e-4
PUBLISHED = (
    # problem, eigenvalue, NeuralEF, NeuralSVD, STNet
    ("−Δ on [0, 1]², zero on the boundary", "dirichlet-square", 1, "1.3", "7.2e-3", "5.1e-7"),
    ("−Δ on [0, 1]², zero on the boundary", "dirichlet-square", 4, "13", "7.6e-3", "2.5e-3"),
    ("the same in 5-D", "dirichlet-box-5d", 1, "0.40", "2.9e-2", "4.7e-6"),
    ("the same in 5-D", "dirichlet-box-5d", 4, "11", "3.3e-2", "2.2e-5"),
)


def row_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    """The first result of a problem."""
    return next(row for row in found["rows"] if row["problem"] == name)


def ours(found: dict[str, Any]) -> str:
    """Every problem that was measured."""
    rows = [
        [
            f"`{row['problem']}`",
            len(row["relative_error"]),
            row["points"],
            f"{row['relative_error'][0]:.1e}",
            f"{max(row['relative_error']):.1e}",
            "–" if row["largest_angle"] is None else f"{row['largest_angle']:.1e}",
            f"{row['seconds']:.0f}",
            f"{row['cpu_seconds']:.0f}",
        ]
        for row in found["rows"]
    ]
    header = ["problem", "pairs", "points", "error at λ₁", "largest error", "largest angle", "s"]
    return table([*header, "CPU s"], rows)


def published(found: dict[str, Any]) -> str:
    """Ours beside what others report."""
    rows = [
        [
            what,
            f"λ{'₀₁₂₃₄₅₆₇₈₉'[j]}",
            *others,
            f"{row_of(found, name)['relative_error'][j - 1]:.1e}",
        ]
        for what, name, j, *others in PUBLISHED
    ]
    hydrogen = max(row_of(found, "hydrogen-2d")["relative_error"])
    rows.append(["−Δ − 1/r in the plane", "λ₁ … λ₉", "–", "6e-3 … 9e-3", "–", f"≤ {hydrogen:.1e}"])
    return table(["problem", "", "NeuralEF", "NeuralSVD", "STNet", "piefs"], rows)


def untrained(found: dict[str, Any]) -> str:
    """The Ritz step by itself."""
    rows = [
        [
            f"`{row['problem']}`",
            f"{max(row['relative_error']):.1e}",
            f"{max(row_of(found, row['problem'])['relative_error']):.1e}",
        ]
        for row in found["untrained"]
    ]
    return table(["problem", "largest error, untrained", "trained"], rows)


def elements(found: dict[str, Any]) -> str:
    """Finite elements on cubes."""
    rows = [
        [
            row["dimension"],
            f"{row['unknowns']:,}",
            f"{row['relative_error'][0]:.1e}",
            f"{max(row['relative_error']):.1e}",
            row["seconds"],
        ]
        for row in found["finite_elements"]
    ]
    return table(["dimension", "unknowns", "error at λ₁", "largest of four", "s"], rows)


def page(found: dict[str, Any]) -> str:
    """The whole page."""
    per_side = np.pi / (12 * TARGET) ** 0.5  # π²h²/12 = TARGET
    busy = round(100 * found["machine"]["busy_before"])
    return f"""# Accuracy of the eigensolver

Measured by `python -m lab.benchmarks operators` (seed {found["seed"]}, the settings of the library,
compilation included), which writes `lab/benchmarks/results.jsonl`; `python -m lab.benchmarks.pages`
makes this page from it. When the run began, {busy} % of the machine's time was
taken by other work, so that wall seconds are upper bounds; CPU seconds are the process's own.

Machine: {machine(found)}

Errors are relative, absolute where λ = 0. The angle is the largest principal angle, in radians,
between a found eigenspace and the exact one, over the eigenspaces that were asked for whole.

{ours(found)}

## Beside published neural eigensolvers

{published(found)}

The square and the 5-D box: relative errors as reported in the STNet paper (arXiv:2510.23986; hours
on a GPU in 5-D). Hydrogen: as reported for NeuralSVD (ICML 2024, openreview qESG5HaaoJ). Settings
differ: theirs train networks by stochastic steps alone, ours takes a Ritz step over all hidden
units, with quadrature. Oscillators are published on truncated boxes, another problem than ours on
ℝᵈ, so they are not set side by side; of SpIN we have no figures on these problems to quote.

## What training adds

The same Ritz step over units as they were initialised:

{untrained(found)}

On smooth problems the Ritz step does most of the work, random units being a good basis already;
training pays where few units must carry many modes in many dimensions (`ou-5d`), and it takes
a good part of the time. With `n_steps=0` it is left out.

## Beside finite elements

−Δ on the unit cube, zero on the boundary, multilinear elements, scipy's shift-and-invert Lanczos:

{elements(found)}

In one to three dimensions finite elements win: at everyday accuracy they are faster, they go around
corners, and they come with a theory. Their error at λ₁ is π²h²/12, so that {TARGET:g} in five
dimensions would take about {per_side**5 / 1e9:.0f} billion unknowns, in a matrix with 243 entries a
row; there, and beyond, functions without a mesh are the way.
"""
