"""The commands and their options. What they do is in the modules beside this one."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from piefs.compilation import keep_compiled

app = typer.Typer(
    name="piefs",
    help="Physics-informed eigenfunction features: a few ordered, orthonormal, smooth, "
    "label-aware coordinates for your data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Built-in data sets: what there is, and where it is.")
app.add_typer(data_app, name="data")


INTERRUPTED = 130  # what shells call a program that Ctrl-C has ended
UsageError: Any = typer.BadParameter.__mro__[1]  # typer does not export it under its own name


class Preset(StrEnum):
    """Named sets of settings."""

    default = "default"
    paper = "paper"
    fast = "fast"


class Task(StrEnum):
    """What to learn."""

    auto = "auto"
    classification = "classification"
    regression = "regression"
    unsupervised = "unsupervised"


class Missing(StrEnum):
    """What to do with missing values."""

    error = "error"
    impute = "impute"


class SplitName(StrEnum):
    """A part of a built-in data set."""

    train = "train"
    validation = "validation"
    test = "test"


Seed = Annotated[int, typer.Option(help="Seed of initialisation and batches.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the built-in sets' files, else $PIEFS_DATA.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the results' folder.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was cut off.")]
Model = Annotated[Path, typer.Argument(help="A run's folder, or the model folder in it.")]
Data = Annotated[
    str, typer.Argument(help="A file (.csv, .tsv, .parquet, .npz, .npy) or a built-in data set.")
]
Part = Annotated[SplitName, typer.Option("--split", help="Which part of a built-in data set.")]
OutFile = Annotated[
    Path | None, typer.Option(help="Where to write (.csv, .npz, .npy, .parquet), else print CSV.")
]


@app.callback(invoke_without_command=True)
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
    data: Data,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    task: Annotated[
        Task, typer.Option(help="What to learn; auto decides by the values of the target.")
    ] = Task.auto,
    preset: Annotated[
        Preset | None, typer.Option(help="Named set of settings, default if none is named.")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="nested, joint or sequential: how the maps are trained.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="off, diag, agop, or a rotation: trotter, chain, brickwall, butterfly, "
            "householder, cayley, exponential, dense."
        ),
    ] = None,
    metric_scope: Annotated[
        str | None,
        typer.Option(help="local, global, global-scales, global-rotation or composed."),
    ] = None,
    metric_constraint: Annotated[str | None, typer.Option(help="volume or trace.")] = None,
    metric_bound: Annotated[float | None, typer.Option(help="Bound on every |log λ|.")] = None,
    metric_depth: Annotated[
        int | None, typer.Option(help="Size of the rotation: sweeps, reflections or rank.")
    ] = None,
    n_components: Annotated[
        int | None, typer.Option("-k", "--n-components", help="Number of maps K.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps a map, or auto, by the rows, if not given.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step.")] = None,
    pretraining: Annotated[str | None, typer.Option(help="graph-laplacian.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML or JSON file of settings; options here win.")
    ] = None,
    missing: Annotated[Missing, typer.Option(help="What to do with gaps.")] = Missing.error,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out.")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="A column that names rows; kept in predictions.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Keep rows of one value together.")] = None,
    time: Annotated[str | None, typer.Option(help="Hold out the latest rows by this.")] = None,
    seed: Seed = 0,
    split_seed: Annotated[int, typer.Option(help="Seed of the splits.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    data_dir: DataDir = None,
    device: Annotated[str | None, typer.Option(help="cpu, gpu or tpu.")] = None,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model and leave it, its metrics, history and figures in a folder."""
    from piefs.cli.fit import fit_data

    fit_data(
        data,
        out or Path("runs") / f"{Path(data).stem}-{seed}",
        source={
            "target": target,
            "drop": tuple(drop or ()),
            "id_column": id_column,
            "group": group,
            "time": time,
            "missing": missing.value,
        },
        data_dir=data_dir,
        split_seed=split_seed,
        task=task.value,
        quiet=quiet,
        as_json=as_json,
        config=config,
        device=device,
        resume=resume,
        force=force,
        preset=None if preset is None else preset.value,
        schedule=schedule,
        metric=metric,
        metric_scope=metric_scope,
        metric_constraint=metric_constraint,
        metric_bound=metric_bound,
        metric_depth=metric_depth,
        n_components=n_components,
        steps_per_component=steps,
        batch_size=batch_size,
        pretraining=pretraining,
        random_state=seed,
    )


@app.command()
def transform(
    model: Model,
    data: Data,
    out: OutFile = None,
    split: Part = SplitName.test,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the coordinates φ₁ … φ_K of each row."""
    from piefs.cli.use import write_coordinates

    write_coordinates(model, data, out, split=split.value, data_dir=data_dir, quiet=quiet)


@app.command()
def predict(
    model: Model,
    data: Data,
    out: OutFile = None,
    split: Part = SplitName.test,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the label and the class probabilities of each row, or the predicted number."""
    from piefs.cli.use import write_predictions

    write_predictions(model, data, out, split=split.value, data_dir=data_dir, quiet=quiet)


@app.command()
def score(
    model: Model,
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="The column with the truth, if its name differs.")
    ] = None,
    split: Part = SplitName.test,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure a model on rows whose labels, or numbers, are known."""
    from piefs.cli.use import show_scores

    show_scores(model, data, target=target, split=split.value, data_dir=data_dir, as_json=as_json)


@app.command()
def inspect(model: Model, as_json: Json = False, debug: Debug = False) -> None:
    """Say what a model is: its data, columns, target, settings and maps."""
    from piefs.cli.use import show_model

    show_model(model, as_json=as_json)


@app.command()
def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="Tables and figures, e.g. table-main; all if none is named."),
    ] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this data set.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds a cell.", min=1)] = 5,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, one a core.", min=1)] = None,
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
    debug: Debug = False,
) -> None:
    """Re-derive the paper's tables and figures, each number beside the paper's."""
    from piefs.cli.reproduce import reproduce_paper, show_cell

    if show is not None:
        show_cell(show, out)
        return
    reproduce_paper(
        items or [],
        out,
        datasets=dataset or [],
        n_seeds=seeds,
        jobs=jobs,
        quick=quick,
        report_only=report_only,
        data_dir=data_dir,
        quiet=quiet,
    )


@app.command()
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
    from piefs.cli.eigen import list_problems, solve_problem

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


@data_app.command("list")
def data_list(data_dir: DataDir = None, as_json: Json = False, debug: Debug = False) -> None:
    """The built-in data sets, and whether their files are here."""
    from piefs.cli.data import show_list

    show_list(data_dir, as_json=as_json)


@data_app.command("path")
def data_path(
    name: Annotated[str, typer.Argument(help="A built-in data set.")],
    data_dir: DataDir = None,
    debug: Debug = False,
) -> None:
    """Where a data set's file is."""
    from piefs.cli.data import show_path

    show_path(name, data_dir)


@data_app.command("build")
def data_build(
    name: Annotated[str, typer.Argument(help="cifar10-r18.")],
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a data set from images and a pretrained network (needs a network connection)."""
    from piefs.cli.data import build_and_tell

    build_and_tell(name, data_dir, quiet=quiet)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="A built-in data set.")],
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Download a data set's file and verify what it decodes to."""
    from piefs.cli.data import fetch_and_tell

    fetch_and_tell(name, data_dir, quiet=quiet)


def main() -> None:
    """Run a command; errors become one line and an exit code (2: bad input, 1: the run failed)."""
    keep_compiled()
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
        sys.exit(code)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to tell the user, and the exit code."""
    from piefs.errors import InputError

    if isinstance(error, KeyboardInterrupt | typer.Abort):
        if sys.argv[1:2] == ["reproduce"]:
            again = shlex.join(sys.argv[1:])
            return f"interrupted; the same command goes on: piefs {again}", INTERRUPTED
        if sys.argv[1:2] == ["fit"]:
            again = [argument for argument in sys.argv[1:] if argument not in ("--force",)]
            again += [] if "--resume" in again else ["--resume"]
            return f"interrupted; continue with: piefs {shlex.join(again)}", INTERRUPTED
        return "interrupted", INTERRUPTED
    if isinstance(error, InputError):
        return " ".join(str(error).split()), 2
    return f"the run failed: {type(error).__name__}: {' '.join(str(error).split())}", 1
