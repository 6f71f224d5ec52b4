"""The commands and their options."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="piefs",
    help="Physics-informed eigenfunction features: a few ordered, orthonormal, smooth, "
    "label-aware coordinates for your data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Preset(StrEnum):
    """Named sets of keywords."""

    paper = "paper"
    fast = "fast"


class Task(StrEnum):
    """What to learn from."""

    classification = "classification"
    unsupervised = "unsupervised"


Seed = Annotated[int, typer.Option(help="Seed of initialisation and batches.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no table.")]
Json = Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"piefs {installed('piefs')}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train on Two Moons, print what was learned, and draw it."""
    from piefs.cli.fit import demonstrate

    demonstrate(out, seed=seed, quiet=quiet, as_json=as_json)


@app.command()
def fit(
    data: Annotated[str, typer.Argument(help="A built-in data set, e.g. two-moons.")],
    task: Annotated[Task, typer.Option(help="What to learn from.")] = Task.classification,
    preset: Annotated[Preset, typer.Option(help="Named set of settings.")] = Preset.fast,
    metric: Annotated[str | None, typer.Option(help="off, diag, trotter or chain.")] = None,
    n_components: Annotated[
        int | None, typer.Option("-k", "--n-components", help="Number of maps K.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps a map.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step.")] = None,
    pretraining: Annotated[str | None, typer.Option(help="graph-laplacian.")] = None,
    seed: Seed = 0,
    split_seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with data files.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model and leave it, its metrics, history and figures in a folder."""
    from piefs.cli.fit import fit_builtin

    fit_builtin(
        data,
        out or Path("runs") / f"{data}-{seed}",
        data_dir=data_dir,
        split_seed=split_seed,
        quiet=quiet,
        as_json=as_json,
        task=task.value,
        preset=preset.value,
        metric=metric,
        n_components=n_components,
        steps_per_component=steps,
        batch_size=batch_size,
        pretraining=pretraining,
        random_state=seed,
    )


def main() -> None:
    """Run a command; errors become one line and an exit code (2: bad input, 1: the run failed)."""
    try:
        app(prog_name="piefs")
    except (KeyboardInterrupt, Exception) as error:
        if "--debug" in sys.argv:
            raise
        message, code = _verdict(error)
        print(f"piefs: {message}", file=sys.stderr)
        sys.exit(code)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to tell the user, and the exit code."""
    from piefs.errors import InputError

    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, InputError):
        return str(error), 2
    return f"the run failed: {type(error).__name__}: {error}", 1
