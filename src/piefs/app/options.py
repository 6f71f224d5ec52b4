"""What commands share: options in groups, which are dataclasses of options, and a bar."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from piefs.data import BUILTIN
from piefs.errors import InputError


def _model(path: Path) -> Path:
    """The folder, if there is one."""
    if path.exists():
        return path
    raise InputError(f"there is no model at {path}")


def _data(data: str) -> str:
    """The name of a data set, or of a file that exists."""
    if data in BUILTIN or Path(data).exists():
        return data
    raise InputError(
        f"there is no file {data}, and no such data set; check the name and the folder, or choose "
        f"one of {', '.join(BUILTIN)}"
    )


KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
TABLE, MODEL, MACHINE = "The table", "The model", "The machine"

Seed = Annotated[int, typer.Option("--seed", help="Seed of initial weights and batches.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the files of built-in data sets, else $PIEFS_DATA."),
]
Model = Annotated[
    Path, typer.Argument(help="A run's folder, or the model folder in it.", callback=_model)
]
Data = Annotated[
    str,
    typer.Argument(
        help="A file (.csv, .tsv, .parquet, .arrow, .npz, .npy, .zarr), a folder of .parquet "
        "files, or a built-in data set.",
        callback=_data,
    ),
]
Folder = Annotated[Path | None, typer.Option(help="Folder for the results.")]
OutFile = Annotated[
    Path | None,
    typer.Option(help="File to write (.csv, .parquet, .arrow, .npz, .npy); else CSV is printed."),
]
Lazy = Annotated[
    bool | None,
    typer.Option(
        "--lazy/--no-lazy",
        help="Read .npy, .zarr and .parquet block by block, or at once; by default large tables "
        "are read block by block.",
    ),
]


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class Source:
    """The rows that a command learns from: a built-in data set or a file, and how it is cut."""

    data: Data
    target: Annotated[str | None, _option(TABLE, "The column to predict.")] = None
    task: Annotated[
        Literal["auto", "classification", "regression", "unsupervised"],
        _option(TABLE, "What to learn; auto decides by the values of the target."),
    ] = "auto"
    missing: Annotated[
        Literal["error", "impute"], _option(TABLE, "What to do with missing values.")
    ] = "error"
    drop: Annotated[list[str] | None, _option(TABLE, "A column to leave out.")] = None
    id_column: Annotated[
        str | None, _option(TABLE, "A column that names rows; kept in predictions.", "--id")
    ] = None
    group: Annotated[
        str | None, _option(TABLE, "Keep the rows of one value of this column together.")
    ] = None
    time: Annotated[str | None, _option(TABLE, "Hold out the latest rows by this column.")] = None
    split_seed: Annotated[int, _option(TABLE, "Seed of the splits.", min=0)] = 0
    data_dir: DataDir = None

    @property
    def given(self) -> dict[str, Any]:
        """What differs from the defaults, by the names of the options."""
        found = {}
        for one in fields(self)[1:]:
            if (value := getattr(self, one.name)) and value != one.default:
                found[one.name.removesuffix("_column").replace("_", "-")] = value
        return found


@dataclass(frozen=True)
class Rows:
    """The rows that a fitted model is used on."""

    data: Data
    split: Annotated[
        Literal["train", "validation", "test"],
        typer.Option("--split", help="Which part of a built-in data set."),
    ] = "test"
    data_dir: DataDir = None


@dataclass(frozen=True)
class ModelOptions:
    """The settings of a model that have options of their own; `--config` takes all of them."""

    preset: Annotated[
        Literal["default", "paper", "fast"] | None,
        _option(MODEL, "Named set of settings; default if none is named."),
    ] = None
    solver: Annotated[
        str | None,
        _option(
            MODEL,
            "How the maps are found: eigen (in closed form, for tables), or by networks: nested, "
            "joint, sequential, or spectral (by a graph of the rows, for few labels).",
        ),
    ] = None
    metric: Annotated[
        str | None,
        _option(
            MODEL,
            "off, diag, and of networks agop, or a rotation: trotter, chain, butterfly, cayley.",
        ),
    ] = None
    n_components: Annotated[
        str | None,
        _option(
            MODEL,
            "Number of maps K, or auto: the fewest that match the best loss on left-out rows.",
            *("-k", "--n-components"),
        ),
    ] = None
    steps_per_component: Annotated[
        int | None,
        _option(MODEL, "Steps a map, of networks; by default chosen by the rows.", "--steps"),
    ] = None
    batch_size: Annotated[int | None, _option(MODEL, "Rows a step, of networks.")] = None
    pretraining: Annotated[str | None, _option(MODEL, "graph-laplacian, of networks.")] = None
    random_state: Seed = 0
    config: Annotated[
        Path | None, _option(MODEL, "TOML or JSON file of settings; options here win.")
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """The estimators' keywords that were given as options."""
        keywords = {one.name: getattr(self, one.name) for one in fields(self)}
        if (self.n_components or "").isdigit():
            keywords["n_components"] = int(keywords["n_components"])
        del keywords["config"]
        return {name: value for name, value in keywords.items() if value is not None}


@dataclass(frozen=True)
class Machine:
    """What a run computes on: a kind of device, several devices, several processes."""

    device: Annotated[str | None, _option(MACHINE, "cpu, gpu or tpu.")] = None
    devices: Annotated[
        str | None, _option(MACHINE, "Devices that share each batch: all, or their number.")
    ] = None
    coordinator: Annotated[
        str | None,
        _option(
            MACHINE,
            "One run over several processes: HOST:PORT of the first of them, or auto on Slurm, "
            "Kubernetes and Open MPI.",
        ),
    ] = None
    num_processes: Annotated[
        int | None, _option(MACHINE, "With --coordinator: how many processes there are.", min=1)
    ] = None
    process_id: Annotated[
        int | None, _option(MACHINE, "With --coordinator: which one this is, from 0.", min=0)
    ] = None


Command = Callable[..., None]


def command(app: typer.Typer, name: str | None = None) -> Callable[[Command], Command]:
    """Register a command. A parameter that is a group stands for its options; all have --debug."""

    def register(function: Command) -> Command:
        groups: dict[str, Any] = {}
        parameters: list[inspect.Parameter] = []
        for place, one in inspect.signature(function, eval_str=True).parameters.items():
            if is_dataclass(one.annotation):
                groups[place] = one.annotation
                parameters += inspect.signature(groups[place], eval_str=True).parameters.values()
            else:
                parameters.append(one)
        parameters.append(inspect.Parameter("debug", KEYWORD_ONLY, default=False, annotation=Debug))
        parameters = [one.replace(kind=KEYWORD_ONLY) for one in parameters]

        def call(**given: Any) -> None:
            del given["debug"]  # `main` looks for it among the arguments
            for place, group in groups.items():
                given[place] = group(**{one.name: given.pop(one.name) for one in fields(group)})
            function(**given)

        call.__signature__ = inspect.Signature(parameters)  # pyright: ignore
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        call.__name__, call.__doc__ = function.__name__, function.__doc__
        app.command(name)(call)
        return function

    return register


@contextmanager
def bar(console: Console, what: str = "") -> Iterator[Callable[..., None]]:
    """A bar on a terminal, nothing elsewhere; yields what sets `completed`, `total`, and more."""
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    disable = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disable) as progress:
        yield partial(progress.update, progress.add_task(what, total=None))
