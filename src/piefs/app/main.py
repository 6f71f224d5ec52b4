"""The commands and their options. What they do is in the modules beside this one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from piefs.app.data_commands import data_app
from piefs.app.options import (
    Company,
    Coordinator,
    Data,
    DataDir,
    Debug,
    Drop,
    Force,
    Gaps,
    Group,
    IdColumn,
    Json,
    Lazy,
    Missing,
    Model,
    NumberOfDevices,
    NumberOfMaps,
    NumberOfProcesses,
    OutFile,
    Part,
    Preset,
    ProcessId,
    Quiet,
    Resume,
    Seed,
    SplitName,
    SplitSeed,
    Target,
    Task,
    Time,
    WhatToLearn,
    number_of_maps,
    source_of,
)
from piefs.app.research import eigen, reproduce
from piefs.app.sharing_commands import export, report
from piefs.app.tune_command import tune
from piefs.training.compilation import keep_compiled
from piefs.training.memory import keep_memory

app = typer.Typer(
    name="piefs",
    help="Physics-informed eigenfunction features: a few ordered, orthonormal, smooth, "
    "label-aware coordinates for your data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train on Two Moons, print what was learned, and draw it."""
    from piefs.app.fit import demonstrate

    demonstrate(out, seed=seed, quiet=quiet, as_json=as_json)


@app.command()
def fit(
    data: Data,
    target: Target = None,
    task: WhatToLearn = Task.auto,
    preset: Annotated[
        Preset | None, typer.Option(help="Named set of settings, default if none is named.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="nested, joint, sequential, or spectral (by a graph of the rows, for few labels): "
            "how the maps are trained."
        ),
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
    n_components: NumberOfMaps = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps a map, or auto, by the rows, if not given.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step.")] = None,
    pretraining: Annotated[str | None, typer.Option(help="graph-laplacian.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML or JSON file of settings; options here win.")
    ] = None,
    missing: Gaps = Missing.error,
    drop: Drop = None,
    id_column: IdColumn = None,
    group: Group = None,
    time: Time = None,
    lazy: Lazy = None,
    seed: Seed = 0,
    split_seed: SplitSeed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    data_dir: DataDir = None,
    device: Annotated[str | None, typer.Option(help="cpu, gpu or tpu.")] = None,
    devices: NumberOfDevices = None,
    coordinator: Coordinator = None,
    num_processes: NumberOfProcesses = None,
    process_id: ProcessId = None,
    report: Annotated[
        bool, typer.Option(help="Compare with baselines and write report.html.")
    ] = True,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model and leave it, its metrics, history, figures and a report in a folder."""
    from piefs.app.fit import fit_data

    columns = {"target": target, "id_column": id_column, "group": group, "time": time}
    fit_data(
        source_of(
            data, data_dir, task, split_seed, drop=drop, missing=missing, lazy=lazy, **columns
        ),
        out or Path("runs") / f"{Path(data).stem}-{seed}",
        quiet=quiet,
        as_json=as_json,
        config=config,
        device=device,
        company=Company(devices, coordinator, num_processes, process_id),
        report=report,
        resume=resume,
        force=force,
        preset=None if preset is None else preset.value,
        schedule=schedule,
        metric=metric,
        metric_scope=metric_scope,
        metric_constraint=metric_constraint,
        metric_bound=metric_bound,
        metric_depth=metric_depth,
        n_components=number_of_maps(n_components),
        steps_per_component=steps,
        batch_size=batch_size,
        pretraining=pretraining,
        random_state=seed,
    )


app.command()(tune)


@app.command()
def transform(
    model: Model,
    data: Data,
    out: OutFile = None,
    split: Part = SplitName.test,
    lazy: Lazy = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the coordinates φ₁ … φ_K of each row."""
    from piefs.app.predict import write_coordinates

    write_coordinates(
        model, data, out, split=split.value, data_dir=data_dir, quiet=quiet, lazy=lazy
    )


@app.command()
def predict(
    model: Model,
    data: Data,
    out: OutFile = None,
    split: Part = SplitName.test,
    lazy: Lazy = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the label and the class probabilities of each row, or the predicted number."""
    from piefs.app.predict import write_predictions

    write_predictions(
        model, data, out, split=split.value, data_dir=data_dir, quiet=quiet, lazy=lazy
    )


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
    from piefs.app.predict import show_scores

    show_scores(model, data, target=target, split=split.value, data_dir=data_dir, as_json=as_json)


@app.command()
def inspect(model: Model, as_json: Json = False, debug: Debug = False) -> None:
    """Say what a model is: its data, columns, target, settings and maps."""
    from piefs.app.inspect import show_model

    show_model(model, as_json=as_json)


for command in (export, report, reproduce, eigen):
    app.command()(command)


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
        if "jax" in sys.modules:  # else there is no company, and loading it would take seconds
            from piefs.training.processes import end

            end(code)
        sys.exit(code)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to tell the user, and the exit code."""
    from piefs.errors import InputError, PiefsError

    if isinstance(error, KeyboardInterrupt | typer.Abort):
        if sys.argv[1:2] in (["reproduce"], ["tune"]):
            again = shlex.join(sys.argv[1:])
            return f"interrupted; the same command goes on: piefs {again}", INTERRUPTED
        if sys.argv[1:2] == ["fit"]:
            again = [argument for argument in sys.argv[1:] if argument not in ("--force",)]
            again += [] if "--resume" in again else ["--resume"]
            return f"interrupted; continue with: piefs {shlex.join(again)}", INTERRUPTED
        return "interrupted", INTERRUPTED
    said = _one_line(str(error))
    if isinstance(error, InputError):
        return said, 2
    kind = "" if isinstance(error, PiefsError) else f"{type(error).__name__}: "
    return f"the run failed: {kind}{said}", 1


def _one_line(text: str) -> str:
    """Words in a row; what steers a terminal, and may come from a file, is left out."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "�" for letter in words)
