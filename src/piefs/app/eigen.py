"""`piefs eigen`: solve a problem of known spectrum, and show how close the answer is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from piefs.data.files import library_versions, write_json
from piefs.errors import InputError
from piefs.operators import PROBLEMS, EigenSolution, EigenSolver, Progress, known
from piefs.operators.solver import Callback
from piefs.report.plot.modes import draw


def list_problems(*, as_json: bool) -> None:
    """The names that `piefs eigen` knows, and what they stand for."""
    rows = {name: known(name) for name in PROBLEMS}
    if as_json:
        print(json.dumps({name: row.problem.description for name, row in rows.items()}))
        return
    table = Table("problem", "operator", "pairs", box=None)
    for name, row in rows.items():
        table.add_row(name, escape(row.problem.description), str(row.n_eigenpairs))
    Console().print(table)


def solve_problem(
    name: str,
    out: Path,
    *,
    n_eigenpairs: int | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Solve, leave everything in a folder, and tell."""
    console = Console(quiet=quiet or as_json)
    found = known(name)
    given = {key: value for key, value in options.items() if value is not None}
    settings: dict[str, Any] = found.settings | given
    solver = EigenSolver(n_eigenpairs or found.n_eigenpairs, **settings)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    console.print(f"[bold]{name}[/bold]  {escape(found.problem.description)}")
    with _progress(console) as callback:
        solution = solver.solve(found.problem, callback)
    solution.save(out / "model")
    document = solution.summary() | {"versions": library_versions()}
    write_json(out / "eigen.json", document)
    draw(solution, out / "figures")
    if as_json:
        print((out / "eigen.json").read_text(encoding="utf-8"), end="")
        return
    _tell(console, solution, out)


@contextmanager
def _progress(console: Console) -> Iterator[Callback]:
    """A bar on a terminal, nothing elsewhere; yields the callback that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=None, note="")

        def update(progress: Progress) -> None:
            note = "" if progress.loss is None else f"sum of Ritz values {progress.loss:.5g}"
            bar.update(
                task,
                description=progress.stage,
                completed=progress.done,
                total=progress.total,
                note=note,
            )

        yield update


def _tell(console: Console, solution: EigenSolution, out: Path) -> None:
    """A row for each eigenvalue, the worst error, how the integrals were taken, where it all is."""
    table = Table("", "eigenvalue", "±", "exact", "relative error", "residual")
    exact, error = solution.exact, solution.relative_error
    for j, value in enumerate(solution.eigenvalues):
        table.add_row(
            str(j + 1),
            f"{value:.8g}" if abs(value) > 1e-9 else f"{value:.1e}",
            f"{solution.error_bars[j]:.0e}",
            *_truth(exact, error, j),
            f"{solution.residuals[j]:.1e}",
        )
    console.print(table)
    kind = {"quadrature": "by quadrature", "sobol": "over quasi-random points"}
    how = kind.get(solution.points, "over random points")
    if error is not None:
        console.print(f"The largest relative error is {error.max():.1e}.")
    console.print(f"± is the error of the integrals, taken {how}.", style="dim")
    where = f"Numbers, functions and figures are in [bold]{out}[/bold]."
    console.print(f"{solution.seconds:.1f} s. {where}", soft_wrap=True)


def _truth(exact: np.ndarray | None, error: np.ndarray | None, j: int) -> tuple[str, str]:
    """The exact value and the relative error, or dashes."""
    if exact is None or error is None:
        return "–", "–"
    return f"{exact[j]:.8g}", f"{error[j]:.1e}" + ("" if exact[j] else " (absolute)")
