"""`piefs data …`: the built-in data sets."""

from typing import Annotated

import typer

from piefs.app.options import DataDir, Debug, Json, Quiet

data_app = typer.Typer(help="Built-in data sets: what there is, and where it is.")


@data_app.command("list")
def data_list(data_dir: DataDir = None, as_json: Json = False, debug: Debug = False) -> None:
    """The built-in data sets, and whether their files are here."""
    from piefs.app.data import show_list

    show_list(data_dir, as_json=as_json)


@data_app.command("path")
def data_path(
    name: Annotated[str, typer.Argument(help="A built-in data set.")],
    data_dir: DataDir = None,
    debug: Debug = False,
) -> None:
    """Where a data set's file is."""
    from piefs.app.data import show_path

    show_path(name, data_dir)


@data_app.command("build")
def data_build(
    name: Annotated[str, typer.Argument(help="cifar10-r18.")],
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a data set from images and a pretrained network (needs a network connection)."""
    from piefs.app.data import build_and_tell

    build_and_tell(name, data_dir, quiet=quiet)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="A built-in data set.")],
    data_dir: DataDir = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Download a data set's file and verify what it decodes to."""
    from piefs.app.data import fetch_and_tell

    fetch_and_tell(name, data_dir, quiet=quiet)
