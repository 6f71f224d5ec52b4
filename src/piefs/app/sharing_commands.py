"""`piefs export` and `piefs report`: what of a run goes to other programs and other people."""

from pathlib import Path
from typing import Annotated

import typer

from piefs.app.options import Debug, ExportFormat, Model, Quiet


def export(
    model: Model,
    chosen: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            help="onnx: a graph for ONNX runtimes; numpy: one Python file that needs numpy alone. "
            "If not given, as the name of --out ends.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file (.onnx or .py) to write, else model.onnx or model.py in MODEL."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a model as a file for programs without piefs: coordinates, labels, probabilities."""
    from piefs.app.export import export_model

    export_model(model, None if chosen is None else chosen.value, out, force=force, quiet=quiet)


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the report of a run anew, from what is in its folder."""
    from piefs.report import write_page

    page = write_page(run)
    if not quiet:
        typer.echo(f"The report is in {page}.")
