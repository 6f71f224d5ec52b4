"""The app, its commands, and what its errors become.

A command's module imports what is heavy when the command runs, and only once the arguments, the
existence of the file and its header are checked: --help and most errors take no second.
"""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from piefs import app as package
from piefs.app import data
from piefs.app.eigen import eigen
from piefs.app.fit import demo, fit
from piefs.app.model import export, inspect
from piefs.app.options import Quiet, command
from piefs.app.predict import predict, score, transform
from piefs.app.tune import tune
from piefs.errors import InputError, PiefsError
from piefs.report import EVIDENCE, PAGE
from piefs.training.runtime import end, keep_compiled

INTERRUPTED = 130  # what shells call a program that Ctrl-C has ended
UsageError: Any = typer.BadParameter.__mro__[1]  # typer does not export it under its own name

app = typer.Typer(
    name="piefs",
    help="Physics-informed eigenfunction features: a few ordered, orthonormal, smooth, "
    "label-aware coordinates for your data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"piefs {installed('piefs-learn')}")
        raise typer.Exit


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")], quiet: Quiet = False
) -> None:
    """Write the report of a run again, from what is in its folder."""
    if not (run / EVIDENCE).is_file():
        raise InputError(f"{run} has no {EVIDENCE}; fit again without --no-report")
    from piefs.report.page import write_page

    write_page(run)
    if not quiet:
        typer.echo(f"The report is in {run / PAGE}.")


for one in (demo, fit, tune, transform, predict, score, inspect, export, report, eigen):
    command(app)(one)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def reproduce(context: typer.Context) -> None:
    """Re-derive the paper's tables and figures (in a checkout of the source repository)."""
    command = data.reproduction("command").app
    raise typer.Exit(command(context.args, prog_name="piefs reproduce", standalone_mode=False) or 0)


app.add_typer(data.app, name="data")


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
        end(code)
        sys.exit(code)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to tell the user, and the exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return _interrupted(sys.argv[1:]), INTERRUPTED
    words = " ".join(str(error).split())  # with control characters, if they come from a file
    message = "".join(letter if letter.isprintable() else "�" for letter in words)
    if isinstance(error, InputError):
        return message, 2
    kind = "" if isinstance(error, PiefsError) else f"{type(error).__name__}: "
    return f"the run failed: {kind}{message}", 1


def _interrupted(arguments: list[str]) -> str:
    """How to continue what Ctrl-C has cut off."""
    if arguments[:1] in (["reproduce"], ["tune"]):
        return f"interrupted; the same command continues: piefs {shlex.join(arguments)}"
    if arguments[:1] == ["fit"]:
        if package.folder is None or not package.folder.checkpoints:
            return "interrupted before there was anything to continue from"
        again = [argument for argument in arguments if argument not in ("--force", "--resume")]
        return f"interrupted; continue with: piefs {shlex.join([*again, '--resume'])}"
    return "interrupted"
