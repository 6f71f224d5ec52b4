"""`piefs tune`: settings chosen on validation rows, and how to fit with them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from piefs.app.fit import describe, load_source
from piefs.app.options import Source
from piefs.app.search import BEST, Tuned, tune
from piefs.data import Dataset
from piefs.errors import InputError

ROWS_SHOWN = 8


def tune_data(source: Source, out: Path, *, quiet: bool, as_json: bool, **options: Any) -> None:
    """Search on the training and validation rows of a data set; its test rows are never used."""
    console = Console(quiet=quiet or as_json)
    data, task, _ = load_source(source)
    if task == "unsupervised":
        raise InputError("there is nothing to tune by without labels: name a --target")
    describe(console, data)
    tuned = _search(console, data, task, out, options)
    command = fit_command(source, out / BEST if tuned.beats_defaults else None)
    if as_json:
        print(json.dumps(_summary(tuned) | {"command": command}))
        return
    console.print(_table(tuned))
    console.print(_verdict(tuned), soft_wrap=True)
    them = "these settings" if tuned.beats_defaults else "the defaults"
    console.print(f"Fit with {them}:  [bold]{command}[/bold]", soft_wrap=True)


def _search(
    console: Console, data: Dataset, task: str, out: Path, options: dict[str, Any]
) -> Tuned:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar:
        shown = bar.add_task("", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(shown, description=what, completed=done, total=total)

        return tune(
            data.train.x,
            data.train.y,
            validation_data=(data.validation.x, data.validation.y),
            task=task,
            standardize=data.standardize,
            out=out,
            tell=tell,
            **options,
        )


def fit_command(source: Source, best: Path | None) -> str:
    """The command that fits with the best settings, or with the defaults, on the same splits."""
    words = ["piefs", "fit", source.data]
    for option, value in source.given.items():
        for one in value if isinstance(value, tuple) else (value,):
            words += [f"--{option}", str(one)]
    words += ["--split-seed", str(source.split_seed)] if source.split_seed else []
    words += [] if best is None else ["--config", str(best)]
    return shlex.join(words)


def _table(tuned: Tuned) -> Table:
    """The candidates that were fitted with all steps, the best first."""
    whole = [record for record in tuned.records if record["share"] == 1 and record["loss"]]
    table = Table("validation loss", "score", "s", "settings")
    for record in whole[:ROWS_SHOWN]:
        loss = f"{record['loss']:.4f} ± {record['losses_error']:.4f}"
        settings = ", ".join(f"{name}={value}" for name, value in record["keywords"].items())
        score, seconds = f"{record['score']:.4f}", f"{record['seconds']:.0f}"
        table.add_row(loss, score, seconds, settings or "the defaults")
    return table


def _verdict(tuned: Tuned) -> str:
    if tuned.beats_defaults:
        return (
            f"Better than the defaults by {tuned.gain:.4f} ± {tuned.gain_error:.4f} of validation "
            "loss. They were chosen for that loss, so expect a little less on new rows."
        )
    return "No settings beat the defaults by more than the noise of the validation rows: keep them."


def _summary(tuned: Tuned) -> dict[str, Any]:
    return {
        "keywords": tuned.keywords,
        "beats_defaults": tuned.beats_defaults,
        "gain": tuned.gain,
        "gain_error": tuned.gain_error,
        "n_trials": len({record["trial"] for record in tuned.records}),
    }
