"""Options that several commands share."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from piefs.errors import InputError


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


class ExportFormat(StrEnum):
    """What other programs can read."""

    onnx = "onnx"
    numpy = "numpy"


def _model_there(path: Path) -> Path:
    """The folder, if there is one: a mistyped name is told before what reads models is loaded."""
    if not path.exists():
        raise InputError(f"there is no model at {path}")
    return path


Seed = Annotated[int, typer.Option(help="Seed of initialisation and batches.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the built-in sets' files, else $PIEFS_DATA.")
]
Dask = Annotated[
    str | None,
    typer.Option(help="Train on a Dask cluster: its scheduler's address, e.g. tcp://host:8786."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the results' folder.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was cut off.")]
Model = Annotated[
    Path,
    typer.Argument(help="A run's folder, or the model folder in it.", callback=_model_there),
]
Data = Annotated[
    str,
    typer.Argument(
        help="A file (.csv, .tsv, .parquet, .arrow, .npz, .npy, .zarr), a folder of .parquet "
        "files, or a built-in data set."
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The column to predict, or an .npy file of labels.")
]
WhatToLearn = Annotated[
    Task, typer.Option(help="What to learn; auto decides by the values of the target.")
]
Gaps = Annotated[Missing, typer.Option(help="What to do with gaps.")]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out.")]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="A column that names rows; kept in predictions.")
]
UnusedIdColumn = Annotated[
    str | None, typer.Option("--id", help="A column that names rows, and is not used.")
]
Group = Annotated[str | None, typer.Option(help="Keep rows of one value together.")]
Time = Annotated[str | None, typer.Option(help="Hold out the latest rows by this.")]
SplitSeed = Annotated[int, typer.Option(help="Seed of the splits.", min=0)]
Lazy = Annotated[
    bool | None,
    typer.Option(
        "--lazy/--no-lazy",
        help="Read .npy, .zarr and .parquet block by block, or at once; if not given, as the size "
        "says.",
    ),
]
Part = Annotated[SplitName, typer.Option("--split", help="Which part of a built-in data set.")]
OutFile = Annotated[
    Path | None,
    typer.Option(help="Where to write (.csv, .parquet, .arrow, .npz, .npy), else print CSV."),
]
NumberOfMaps = Annotated[
    str | None,
    typer.Option(
        "-k", "--n-components", help="Number of maps K, or auto: as few as do on validation rows."
    ),
]

NumberOfDevices = Annotated[
    str | None,
    typer.Option("--devices", help="Devices that share each batch: all, or their number."),
]
Coordinator = Annotated[
    str | None,
    typer.Option(
        help="One run over several processes: HOST:PORT of the first of them, or auto on Slurm, "
        "Kubernetes and Open MPI."
    ),
]
NumberOfProcesses = Annotated[
    int | None, typer.Option(help="With --coordinator: how many processes there are.", min=1)
]
ProcessId = Annotated[
    int | None, typer.Option(help="With --coordinator: which one this is, from 0.", min=0)
]


@dataclass(frozen=True)
class Columns:
    """What the columns of a user's own file are for."""

    target: str | None = None
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    group: str | None = None
    time: str | None = None
    missing: str = Missing.error.value

    def given(self) -> dict[str, Any]:
        """Those that a command was given, by the names of their options."""
        unsaid = asdict(Columns())
        said = {name: value for name, value in asdict(self).items() if value != unsaid[name]}
        return {name.removesuffix("_column"): value for name, value in said.items()}


@dataclass(frozen=True)
class Source:
    """The rows that a command learns from: a built-in data set or a file, and how it is cut."""

    data: str
    columns: Columns
    task: str
    split_seed: int
    data_dir: Path | None
    lazy: bool | None = False


def source_of(
    data: str,
    data_dir: Path | None,
    task: Task,
    split_seed: int,
    *,
    drop: list[str] | None,
    missing: Missing,
    lazy: bool | None = False,
    **columns: str | None,
) -> Source:
    """What the options that `fit` and `tune` share have said of the data."""
    used = Columns(drop=tuple(drop or ()), missing=missing.value, **columns)
    return Source(data, used, task.value, split_seed, data_dir, lazy)


@dataclass(frozen=True)
class Company:
    """What shares a run: devices, and other processes."""

    devices: str | None = None
    coordinator: str | None = None
    n_processes: int | None = None
    process: int | None = None

    def joined(self) -> int | str | None:
        """The estimators' keyword `devices`, once the other processes are met, if there are any."""
        devices = "all" if self.devices is None and self.coordinator else self.devices
        if self.coordinator is not None:
            from piefs.training.processes import join

            if devices != "all":
                raise InputError("several processes share all their devices: leave --devices out")
            join(self.coordinator, self.n_processes, self.process)
        elif self.n_processes is not None or self.process is not None:
            raise InputError("--num-processes and --process-id go with --coordinator HOST:PORT")
        if devices is None or devices == "all":
            return devices
        if not devices.isdigit() or devices == "0":
            raise InputError(f"--devices must be all or a number of devices, not {devices!r}")
        return int(devices)


def number_of_maps(value: str | None) -> int | str | None:
    """What was given for -k, as the estimators take it."""
    if value is None or value == "auto":
        return value
    try:
        return int(value)
    except ValueError as error:
        raise typer.BadParameter(f"-k must be a whole number or auto, not {value!r}") from error
