"""The commands for research: the paper's evidence, and operators of known spectrum."""

from pathlib import Path
from typing import Annotated

import typer

from piefs.app.options import Dask, DataDir, Debug, Json, Quiet, Seed
from piefs.app.reproduce import reproduction
from piefs.errors import InputError


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables and figures, e.g. table-main, or single runs, e.g. "
            "mnist/piefs-off/supervised/paper/0; all if none is named."
        ),
    ] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this data set.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds a cell.", min=1)] = 5,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, one a core.", min=1)] = None,
    dask: Dask = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny budgets: try the whole way.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing; write the report.")
    ] = False,
    show: Annotated[str | None, typer.Option(help="Print what is known of one cell.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for records and report.")] = Path("results"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Re-derive the paper's tables and figures, each number beside the paper's."""
    if show is not None:
        return reproduction("show").show_cell(show, out, quick=quick, as_json=as_json)
    if as_json:
        raise InputError("--json goes with --show; the grid itself leaves summary.csv")
    reproduction("grid_command").reproduce_paper(
        items or [],
        out / "quick" if quick else out,  # so that they never mix with real ones
        datasets=dataset or [],
        n_seeds=seeds,
        jobs=jobs,
        dask=dask,
        quick=quick,
        report_only=report_only,
        data_dir=data_dir,
        quiet=quiet,
    )


def eigen(
    problem: Annotated[
        str | None, typer.Argument(help="A problem of known spectrum, e.g. dirichlet-square.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the problems.")] = False,
    n_eigenpairs: Annotated[
        int | None, typer.Option("-k", "--n-eigenpairs", help="How many eigenpairs.", min=1)
    ] = None,
    training: Annotated[str | None, typer.Option(help="joint or sequential.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=0)] = None,
    points: Annotated[
        str | None, typer.Option(help="Of the Ritz step: quadrature, sobol or random.")
    ] = None,
    n_points: Annotated[int | None, typer.Option(help="How many of them, at most.")] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find the lowest eigenpairs of an operator whose spectrum is known."""
    if problem is None and not list_all:
        raise typer.BadParameter("name a problem, or ask for the --list")
    from piefs.app.eigen import list_problems, solve_problem

    if problem is None or list_all:
        return list_problems(as_json=as_json)
    solve_problem(
        problem,
        out or Path("runs") / f"eigen-{problem}",
        n_eigenpairs=n_eigenpairs,
        quiet=quiet,
        as_json=as_json,
        training=training,
        n_steps=steps,
        points=points,
        n_points=n_points,
        random_state=seed,
    )
