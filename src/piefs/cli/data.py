"""`piefs data`: the built-in data sets."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from piefs.datasets import BUILTIN
from piefs.datasets.download import fetch
from piefs.datasets.files import FILES, DataFile, locate
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
    table = Table("name", "what it is", "where")
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


def fetch_and_tell(name: str, data_dir: Path | None, *, quiet: bool) -> None:
    """Download, verify, and say where the file is."""
    path = fetch(_file_of(name), data_dir, progress=not quiet)
    if not quiet:
        print(f"{name} is in {path}; its content is verified.")
