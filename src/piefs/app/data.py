"""`piefs data`: the built-in data sets."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from piefs.app.reproduce import reproduction
from piefs.data import BUILTIN
from piefs.data.fetch import FILES, DataFile, fetch, locate
from piefs.errors import DataNotFoundError, InputError


def show_list(data_dir: Path | None, *, as_json: bool) -> None:
    """Names, what they are, and where."""
    rows = [
        {"name": name, "about": _first_line(loader.__doc__), "place": _place(name, data_dir)}
        for name, loader in BUILTIN.items()
    ]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("name", "what it is", Column("where", overflow="fold"))
    for row in rows:
        table.add_row(row["name"], row["about"], row["place"])
    Console().print(table)


def _first_line(docstring: str | None) -> str:
    return (docstring or "").splitlines()[0]


def _place(name: str, data_dir: Path | None) -> str:
    if name not in FILES:
        return "generated or bundled"
    try:
        return str(locate(FILES[name], data_dir))
    except DataNotFoundError:
        if FILES[name].is_built:
            return f"not here: piefs data build {name}"
        return f"not here: piefs data fetch {name}" if FILES[name].urls else "not here"


def _file_of(name: str) -> DataFile:
    if name not in BUILTIN:
        raise InputError(f"unknown data set {name!r}; choose one of {', '.join(BUILTIN)}")
    if name not in FILES:
        raise InputError(f"{name!r} is generated or bundled: it has no file")
    return FILES[name]


def show_path(name: str, data_dir: Path | None) -> None:
    """The path alone, for use in scripts."""
    print(locate(_file_of(name), data_dir))


def build_and_tell(name: str, data_dir: Path | None, *, quiet: bool) -> None:
    """Make a data set that cannot be downloaded as such."""
    if not _file_of(name).is_built:
        raise InputError(f"{name!r} is not made here; `piefs data list` says where it comes from")
    console = Console(quiet=quiet)
    columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        path = reproduction("embed").build_cifar10_r18(
            data_dir, lambda done, total: progress.update(task, completed=done, total=total)
        )
    console.print(f"{name} is in {path}.")


def fetch_and_tell(name: str, data_dir: Path | None, *, quiet: bool) -> None:
    """Download, verify, and say where the file is."""
    path = fetch(_file_of(name), data_dir, progress=not quiet)
    if not quiet:
        print(f"{name} is in {path}; its content is verified.")
