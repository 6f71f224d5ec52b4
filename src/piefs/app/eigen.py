"""`piefs eigen`: solve a problem of known spectrum, and show how close the answer is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from piefs.app.options import Folder, Json, Quiet, Seed, bar
from piefs.data.files import library_versions, write_json
from piefs.errors import InputError

if TYPE_CHECKING:
    from piefs.operators import EigenSolution
    from piefs.operators.solver import Progress

HOW = {"quadrature": "by quadrature", "sobol": "over quasi-random points"}


def eigen(
    problem: Annotated[
        str | None, typer.Argument(help="A problem of known spectrum, e.g. dirichlet-square.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the problems.")] = False,
    n_eigenpairs: Annotated[
        int | None, typer.Option("-k", "--n-eigenpairs", help="How many eigenpairs.", min=1)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=0)] = None,
    points: Annotated[
        str | None, typer.Option(help="Points of the Ritz step: quadrature or sobol.")
    ] = None,
    n_points: Annotated[int | None, typer.Option(help="How many points, at most.")] = None,
    seed: Seed = 0,
    out: Folder = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the lowest eigenpairs of an operator whose spectrum is known."""
    if list_all:
        return _list_problems(as_json=as_json)
    if problem is None:
        raise typer.BadParameter("name a problem, or ask for the --list")
    out = out or Path("runs") / f"eigen-{problem}"
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    from piefs.operators import EigenSolver, known
    from piefs.report.plot.modes import draw

    found = known(problem)
    given = {"n_steps": steps, "points": points, "n_points": n_points}
    settings = found.settings | {name: one for name, one in given.items() if one is not None}
    solver = EigenSolver(n_eigenpairs or found.n_eigenpairs, **settings, random_state=seed)
    console = Console(quiet=quiet or as_json)
    console.print(f"[bold]{problem}[/bold]  {escape(found.problem.description)}")
    with bar(console, "compiling") as update:
        solution = solver.solve(found.problem, lambda at: update(**_shown(at)))
    solution.save(out / "model")
    write_json(out / "eigen.json", solution.summary() | {"versions": library_versions()})
    draw(solution, out / "figures")
    if as_json:
        print((out / "eigen.json").read_text(encoding="utf-8"), end="")
    else:
        _tell(console, solution, out)


def _list_problems(*, as_json: bool) -> None:
    """The names that `piefs eigen` knows, and what they stand for."""
    from piefs.operators import PROBLEMS, known

    rows = {name: known(name) for name in PROBLEMS}
    if as_json:
        print(json.dumps({name: row.problem.description for name, row in rows.items()}))
        return
    table = Table("problem", "operator", "pairs", box=None)
    for name, row in rows.items():
        table.add_row(name, escape(row.problem.description), str(row.n_eigenpairs))
    Console().print(table)


def _shown(at: Progress) -> dict[str, Any]:
    note = "" if at.loss is None else f", sum of Ritz values {at.loss:.5g}"
    return {"description": at.stage + note, "completed": at.done, "total": at.total}


def _tell(console: Console, solution: EigenSolution, out: Path) -> None:
    """A row for each eigenvalue, the worst error, how the integrals were taken, where it all is."""
    table = Table("", "eigenvalue", "±", "exact", "relative error", "residual")
    exact, error = solution.exact, solution.relative_error
    for j, value in enumerate(solution.eigenvalues):
        shown, truth = f"{value:.8g}" if abs(value) > 1e-9 else f"{value:.1e}", ("–", "–")
        if exact is not None and error is not None:
            truth = f"{exact[j]:.8g}", f"{error[j]:.1e}" + ("" if exact[j] else " (absolute)")
        margin, residual = f"{solution.error_bars[j]:.0e}", f"{solution.residuals[j]:.1e}"
        table.add_row(str(j + 1), shown, margin, *truth, residual)
    console.print(table)
    if error is not None:
        console.print(f"The largest relative error is {error.max():.1e}.")
    console.print(f"± is the error of the integrals, taken {HOW[solution.points]}.", style="dim")
    where = f"Numbers, functions and figures are in [bold]{out}[/bold]."
    console.print(f"{solution.seconds:.1f} s. {where}", soft_wrap=True)
