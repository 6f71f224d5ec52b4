"""`piefs tune` and its options."""

from pathlib import Path
from typing import Annotated

import typer

from piefs.app.options import (
    Dask,
    Data,
    DataDir,
    Debug,
    Drop,
    Gaps,
    Group,
    Json,
    Missing,
    Quiet,
    Seed,
    SplitSeed,
    Target,
    Task,
    Time,
    UnusedIdColumn,
    WhatToLearn,
    source_of,
)


def tune(
    data: Data,
    target: Target = None,
    task: WhatToLearn = Task.auto,
    budget: Annotated[
        float | None, typer.Option(help="Minutes to search for; as many trials as they allow.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="How many settings to try, 18 if no budget is given.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Trials at a time, 1 by default.", min=1)] = None,
    dask: Dask = None,
    missing: Gaps = Missing.error,
    drop: Drop = None,
    id_column: UnusedIdColumn = None,
    group: Group = None,
    time: Time = None,
    seed: Seed = 0,
    split_seed: SplitSeed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the records; the same command goes on there.")
    ] = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Search for better settings on validation rows; the test rows are not looked at."""
    from piefs.app.tune import tune_data

    columns = {"target": target, "id_column": id_column, "group": group, "time": time}
    tune_data(
        source_of(
            data, data_dir, task, split_seed, drop=drop, missing=missing, lazy=False, **columns
        ),
        out or Path("runs") / f"tune-{Path(data).stem}-{seed}",
        quiet=quiet,
        as_json=as_json,
        budget_minutes=budget,
        n_trials=trials,
        n_jobs=jobs,
        dask=dask,
        seed=seed,
    )
