"""The options of `piefs reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from piefs.app.options import Dask, DataDir, Json, Quiet, command
from piefs.errors import InputError
from reproduction.grid_command import reproduce_paper
from reproduction.show import show_cell

app = typer.Typer(add_completion=False)


@command(app)
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
        bool, typer.Option("--quick", help="Tiny budgets: a test of the whole way.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing; write the report.")
    ] = False,
    show: Annotated[str | None, typer.Option(help="Print what is known of one cell.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for records and report.")] = Path("results"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Re-derive the paper's tables and figures, each number beside the paper's."""
    if show is not None:
        return show_cell(show, out, quick=quick, as_json=as_json)
    if as_json:
        raise InputError("--json goes with --show; the grid itself leaves summary.csv")
    reproduce_paper(
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
