"""`piefs data`: the built-in data sets; and where the paper's audit is found."""

import importlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from piefs.app.options import DataDir, Json, Quiet, bar, command
from piefs.data import BUILTIN
from piefs.data.fetch import FILES, DataFile, fetch, locate
from piefs.errors import DataNotFoundError, InputError

BuiltIn = Annotated[str, typer.Argument(help="A built-in data set.")]
app = typer.Typer(help="List, find and fetch the built-in data sets.", no_args_is_help=True)


@command(app, "list")
def show_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the built-in data sets, and whether their files are here."""
    table, rows = Table("name", "what it is", Column("where", overflow="fold")), []
    for name, loader in BUILTIN.items():
        about, place = str(loader.__doc__).splitlines()[0], _place(name, data_dir)
        rows.append({"name": name, "about": about, "place": place})
        table.add_row(name, about, place)
    print(json.dumps(rows)) if as_json else Console().print(table)


def _place(name: str, data_dir: Path | None) -> str:
    if name not in FILES:
        return "generated or bundled"
    try:
        return str(locate(FILES[name], data_dir))
    except DataNotFoundError:
        command = FILES[name].command
        return f"not here: {command}" if command else "not here"


def _file_of(name: str) -> DataFile:
    if name not in BUILTIN:
        raise InputError(f"unknown data set {name!r}; choose one of {', '.join(BUILTIN)}")
    if name not in FILES:
        raise InputError(f"{name!r} is generated or bundled: it has no file")
    return FILES[name]


@command(app, "path")
def show_path(name: BuiltIn, data_dir: DataDir = None) -> None:
    """Print where a data set's file is."""
    print(locate(_file_of(name), data_dir))


@command(app, "build")
def build(
    name: Annotated[str, typer.Argument(help="cifar10-r18.")],
    data_dir: DataDir = None,
    quiet: Quiet = False,
) -> None:
    """Make a data set from images and a pretrained network (needs a network connection)."""
    if not _file_of(name).is_built:
        raise InputError(f"{name!r} is not made here; `piefs data list` says where it comes from")
    console = Console(quiet=quiet)
    with bar(console, "embedding") as update:
        path = reproduction("embed").build_cifar10_r18(
            data_dir, lambda done, total: update(completed=done, total=total)
        )
    console.print(f"{name} is in {path}.")


@command(app, "fetch")
def fetch_file(name: BuiltIn, data_dir: DataDir = None, quiet: Quiet = False) -> None:
    """Download a data set's file and verify what it decodes to."""
    with bar(Console(quiet=quiet), f"downloading {name}"):
        path = fetch(_file_of(name), data_dir)
    if not quiet:
        print(f"{name} is in {path}; its content is verified.")


def reproduction(module: str) -> Any:
    """A module of `reproduction/`, from the checkout that this is run in or installed from."""
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / "reproduction" / "__init__.py").is_file():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module(f"reproduction.{module}")
    raise InputError(
        "the paper's runs, tables and figures are not part of the installed package: get the "
        "source repository, and run this command in its folder"
    )
