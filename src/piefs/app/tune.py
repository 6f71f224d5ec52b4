"""`piefs tune`: settings chosen on validation rows, and how to fit with them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from piefs.app.fit import describe, load_source
from piefs.app.options import Json, Quiet, Seed, Source, bar
from piefs.errors import InputError

if TYPE_CHECKING:
    from piefs.app.search import Tuned

ROWS_SHOWN = 8


def tune(
    source: Source,
    budget: Annotated[
        float | None,
        typer.Option(help="Minutes to search for; as many trials as they allow.", min=0.01),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="How many settings to try, 18 if no budget is given.", min=1, max=200),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Trials at a time, 1 by default.", min=1)] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the records; the same command continues there."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Search for better settings on validation rows; test rows are never used."""
    out = out or Path("runs") / f"tune-{Path(source.data).stem}-{seed}"
    console = Console(quiet=quiet or as_json)
    data, task, _ = load_source(source)
    if task == "unsupervised":
        raise InputError("there is nothing to tune by without labels: name a --target")
    describe(console, data)
    from piefs.app import search

    with bar(console, "the defaults") as update:
        tuned = search.tune(
            data.train.x,
            data.train.y,
            validation_data=(data.validation.x, data.validation.y),
            task=task,
            standardize=data.standardize,
            budget_minutes=budget,
            n_trials=trials,
            n_jobs=jobs,
            seed=seed,
            out=out,
            tell=lambda what, done, total: update(description=what, completed=done, total=total),
        )
    words = ["piefs", "fit", source.data]
    for option, value in source.given.items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{option}", str(one)]
    words += ["--config", str(out / search.BEST)] if tuned.beats_defaults else []
    _tell(console, tuned, shlex.join(words), as_json=as_json)


def _tell(console: Console, tuned: Tuned, command: str, *, as_json: bool) -> None:
    """The best candidates in order; then the verdict."""
    if as_json:
        names = ("keywords", "beats_defaults", "gain", "gain_error")
        summary: dict[str, Any] = {name: getattr(tuned, name) for name in names}
        print(json.dumps(summary | {"n_trials": len(tuned.records), "command": command}))
        return
    from piefs.estimators.decisions import OF_DESCENT

    table = Table("validation loss", "score", "s", "settings")
    for record in tuned.records[:ROWS_SHOWN]:
        loss, score = f"{record['loss']:.4f} ± {record['losses_error']:.4f}", record["score"]
        settings = ", ".join(f"{name}={value}" for name, value in record["keywords"].items())
        if set(record["keywords"]) & set(OF_DESCENT):  # which the closed form does not take
            settings = f"networks: {settings}"
        table.add_row(loss, f"{score:.4f}", f"{record['seconds']:.0f}", settings or "the defaults")
    console.print(table)
    verdict = "No settings beat the defaults beyond the noise: keep them."
    if tuned.beats_defaults:
        verdict = (
            f"Better than the defaults by {tuned.gain:.4f} ± {tuned.gain_error:.4f} of validation "
            "loss. They were chosen for that loss, so expect a little less on new rows."
        )
    console.print(f"{verdict} Fit with:  [bold]{command}[/bold]", soft_wrap=True)
