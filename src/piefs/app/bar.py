"""The bar that commands show on a terminal while something takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def bar(console: Console, what: str = "") -> Iterator[Callable[..., None]]:
    """A bar on a terminal, nothing elsewhere; yields what sets `completed`, `total`, and more."""
    columns = (
        TextColumn("{task.description}"),
        *(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
    )
    disable = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disable) as progress:
        yield partial(progress.update, progress.add_task(what, total=None))
