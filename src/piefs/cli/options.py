"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
    str,
    typer.Argument(
        help="A file (.csv, .tsv, .parquet, .arrow, .npz, .npy) or a built-in data set."
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


def number_of_maps(value: str | None) -> int | str | None:
    """What was given for -k, as the estimators take it."""
    if value is None or value == "auto":
        return value
    try:
        return int(value)
    except ValueError as error:
        raise typer.BadParameter(f"-k must be a whole number or auto, not {value!r}") from error
