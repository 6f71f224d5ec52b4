"""The commands. Each imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from piefs.app import options
from piefs.app.options import Dask, DataDir, Folder, Force, Json, OutFile, Quiet, Seed, command
from piefs.training.runtime import keep_compiled, keep_memory

app = typer.Typer(
    name="piefs",
    help="Physics-informed eigenfunction features: a few ordered, orthonormal, smooth, "
    "label-aware coordinates for your data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="List, find and fetch the built-in data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

INTERRUPTED = 130  # what shells call a program that Ctrl-C has ended
UsageError: Any = typer.BadParameter.__mro__[1]  # typer does not export it under its own name


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"piefs {installed('piefs-learn')}")
        raise typer.Exit


@command(app)
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on Two Moons, print what was learned, and draw it."""
    from piefs.app.fit import demonstrate

    demonstrate(out, seed=seed, quiet=quiet, as_json=as_json)


@command(app)
def fit(
    source: options.LargeSource,
    model: options.ModelOptions,
    machine: options.Machine,
    out: Folder = None,
    report: Annotated[
        bool, typer.Option(help="Compare with baselines and write report.html.")
    ] = True,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was cut off.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a model; leave it with its scores, history, figures and a report in a folder."""
    from piefs.app.fit import fit_data

    out = out or Path("runs") / f"{Path(source.data).stem}-{model.seed}"
    flow = {"report": report, "resume": resume, "force": force, "quiet": quiet, "as_json": as_json}
    fit_data(source, out, model, machine, **flow)


@command(app)
def tune(
    source: options.Source,
    budget: Annotated[
        float | None, typer.Option(help="Minutes to search for; as many trials as they allow.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="How many settings to try, 18 if no budget is given.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Trials at a time, 1 by default.", min=1)] = None,
    dask: Dask = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the records; the same command continues there."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Search for better settings on validation rows; test rows are never used."""
    from piefs.app.tune import tune_data

    out = out or Path("runs") / f"tune-{Path(source.data).stem}-{seed}"
    size = {"budget_minutes": budget, "n_trials": trials, "n_jobs": jobs, "dask": dask}
    tune_data(source, out, seed=seed, quiet=quiet, as_json=as_json, **size)


@command(app)
def transform(
    model: options.Model, rows: options.LargeRows, out: OutFile = None, quiet: Quiet = False
) -> None:
    """Write the coordinates φ₁ … φ_K of each row."""
    from piefs.app.predict import write_coordinates

    write_coordinates(model, rows, out, quiet=quiet)


@command(app)
def predict(
    model: options.Model, rows: options.LargeRows, out: OutFile = None, quiet: Quiet = False
) -> None:
    """Write the label and the class probabilities of each row, or the predicted number."""
    from piefs.app.predict import write_predictions

    write_predictions(model, rows, out, quiet=quiet)


@command(app)
def score(
    model: options.Model,
    rows: options.Rows,
    target: Annotated[
        str | None, typer.Option(help="The column with the truth, if its name differs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on rows whose labels, or numbers, are known."""
    from piefs.app.predict import show_scores

    show_scores(model, rows, target=target, as_json=as_json)


@command(app)
def inspect(model: options.Model, as_json: Json = False) -> None:
    """Show what a model is: its data, columns, target, settings and maps."""
    from piefs.app.inspect import show_model

    show_model(model, as_json=as_json)


@command(app)
def export(
    model: options.Model,
    chosen: Annotated[
        Literal["onnx", "numpy"] | None,
        typer.Option(
            "--format",
            help="onnx: a graph for ONNX runtimes; numpy: one Python file that needs numpy alone. "
            "By default the name of --out decides.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file (.onnx or .py) to write, else model.onnx or model.py in MODEL."
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as a file for programs without piefs: coordinates, labels, probabilities."""
    from piefs.app.export import export_model

    export_model(model, chosen, out, force=force, quiet=quiet)


@command(app)
def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")], quiet: Quiet = False
) -> None:
    """Write the report of a run again, from what is in its folder."""
    from piefs.report.page import write_page

    page = write_page(run)
    if not quiet:
        typer.echo(f"The report is in {page}.")


ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command(context_settings=ANYTHING, add_help_option=False)
def reproduce(context: typer.Context) -> None:
    """Re-derive the paper's tables and figures (in a checkout of the source repository)."""
    from piefs.app.reproduce import reproduction

    command = reproduction("command").app
    raise typer.Exit(command(context.args, prog_name="piefs reproduce", standalone_mode=False) or 0)


@command(app)
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
        str | None, typer.Option(help="Points of the Ritz step: quadrature, sobol or random.")
    ] = None,
    n_points: Annotated[int | None, typer.Option(help="How many points, at most.")] = None,
    seed: Seed = 0,
    out: Folder = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the lowest eigenpairs of an operator whose spectrum is known."""
    if problem is None and not list_all:
        raise typer.BadParameter("name a problem, or ask for the --list")
    from piefs.app.eigen import list_problems, solve_problem

    if problem is None or list_all:
        return list_problems(as_json=as_json)
    given = {"training": training, "n_steps": steps, "points": points, "n_points": n_points}
    out = out or Path("runs") / f"eigen-{problem}"
    pairs = {"n_eigenpairs": n_eigenpairs, "random_state": seed}
    solve_problem(problem, out, quiet=quiet, as_json=as_json, **pairs, **given)


@command(data_app, "list")
def data_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the built-in data sets, and whether their files are here."""
    from piefs.app.data import show_list

    show_list(data_dir, as_json=as_json)


@command(data_app, "path")
def data_path(name: options.BuiltIn, data_dir: DataDir = None) -> None:
    """Print where a data set's file is."""
    from piefs.app.data import show_path

    show_path(name, data_dir)


@command(data_app, "build")
def data_build(
    name: Annotated[str, typer.Argument(help="cifar10-r18.")],
    data_dir: DataDir = None,
    quiet: Quiet = False,
) -> None:
    """Make a data set from images and a pretrained network (needs a network connection)."""
    from piefs.app.data import build_and_tell

    build_and_tell(name, data_dir, quiet=quiet)


@command(data_app, "fetch")
def data_fetch(name: options.BuiltIn, data_dir: DataDir = None, quiet: Quiet = False) -> None:
    """Download a data set's file and verify what it decodes to."""
    from piefs.app.data import fetch_and_tell

    fetch_and_tell(name, data_dir, quiet=quiet)


def main() -> None:
    """Run a command; errors become one line and an exit code (2: bad input, 1: the run failed)."""
    keep_compiled()
    keep_memory()
    try:
        code = app(prog_name="piefs", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except UsageError as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, Exception) as error:
        if "--debug" in sys.argv:
            raise
        message, code = _verdict(error)
        print(f"piefs: {message}", file=sys.stderr)
        if "jax" in sys.modules:  # else there are no other processes, and loading takes seconds
            from piefs.training.runtime import end

            end(code)
        sys.exit(code)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to tell the user, and the exit code."""
    from piefs.errors import InputError, PiefsError

    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return _interrupted(sys.argv[1:]), INTERRUPTED
    message = _one_line(str(error))
    if isinstance(error, InputError):
        return message, 2
    kind = "" if isinstance(error, PiefsError) else f"{type(error).__name__}: "
    return f"the run failed: {kind}{message}", 1


def _interrupted(arguments: list[str]) -> str:
    """How to continue what Ctrl-C has cut off."""
    if arguments[:1] in (["reproduce"], ["tune"]):
        return f"interrupted; the same command continues: piefs {shlex.join(arguments)}"
    if arguments[:1] == ["fit"]:
        again = [argument for argument in arguments if argument not in ("--force", "--resume")]
        return f"interrupted; continue with: piefs {shlex.join([*again, '--resume'])}"
    return "interrupted"


def _one_line(text: str) -> str:
    """Words in a row; control characters, which may come from a file, are replaced."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "�" for letter in words)
