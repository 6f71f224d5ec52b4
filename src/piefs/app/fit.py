"""`piefs demo` and `piefs fit`: what becomes of the data, progress, then a table of results."""

import json
import warnings
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from piefs import app
from piefs.app.clock import Clock, in_phases
from piefs.app.folder import RunFolder, TableDetails
from piefs.app.options import Folder, Force, Json, Lazy, Machine, ModelOptions, Quiet, Seed, Source
from piefs.data import BUILTIN, Dataset, load
from piefs.data.files import read_document, reading
from piefs.data.streamed import is_to_be_streamed
from piefs.data.tabular import TableOptions, load_table
from piefs.errors import InputError, TrainingWarning
from piefs.training.config import Settings

DECIDED = ("gram", "held_out", "graph_rows", "whiten", "seed", "leading_variance", "asked")
KEYWORDS = (*(f.name for f in fields(Settings) if f.name not in DECIDED), "class_weight")
"""The estimators' keywords that a file of settings may have."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on Two Moons, print what was learned, and draw it."""
    console = Console(quiet=quiet or as_json)
    data = load("two-moons")
    describe(console, data)
    metrics = _run(console, data, out, force=True, n_components=8, random_state=seed)
    _tell_results(console, metrics, out, as_json=as_json)


def fit(
    source: Source,
    model: ModelOptions,
    machine: Machine,
    lazy: Lazy = None,
    out: Folder = None,
    report: Annotated[
        bool, typer.Option(help="Compare with baselines and write report.html.")
    ] = True,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was cut off.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a model; leave it with its scores, history, figures and a report in a folder."""
    out = out or Path("runs") / f"{Path(source.data).stem}-{model.random_state}"
    folder, keywords = RunFolder(out), settings_asked(model)
    app.folder = folder
    devices, is_first = joined(machine), True
    is_finished = resume and folder.is_finished
    if machine.coordinator is not None:
        from piefs.training import runtime, sharding

        is_first = runtime.is_first()
        is_finished = sharding.devices_of(devices).any(is_first and is_finished)
    elif not is_finished:
        folder.check(resume=resume, force=force)
    console = Console(quiet=quiet or as_json or not is_first)
    if is_finished:
        console.print(f"{out} is finished already.")
        with reading(folder.metrics, "fit again with --force"):
            metrics = read_document(folder.metrics) if is_first else {}
            return _tell_results(console, metrics, out, as_json=as_json)
    data, task, table = load_source(source, lazy=lazy)
    describe(console, data, table)
    if resume and not folder.checkpoints:
        console.print(f"There is nothing to resume in {out}: starting from the beginning.")
    keywords |= {"task": task, "table": table, "report": report, "resume": resume, "force": force}
    _tell_results(console, _run(console, data, out, devices, **keywords), out, as_json=as_json)


def settings_asked(model: ModelOptions) -> dict[str, Any]:
    """The settings of a file and of options, which win, checked for what no data can allow."""
    keywords = read_config(model.config) | model.given
    others = ("class_weight", "random_state")
    Settings.of(**{name: value for name, value in keywords.items() if name not in others})
    return keywords


def read_config(path: Path | None) -> dict[str, Any]:
    """The settings in a `--config` file; an unknown name or an unreadable file is an InputError."""
    if path is None:
        return {}
    settings = read_document(path, "give a TOML or JSON file of settings, as batch_size = 512")
    for name in settings:
        if name not in KEYWORDS:
            raise InputError(f"{path}: unknown setting {name!r}; known are {', '.join(KEYWORDS)}")
    return settings


def joined(machine: Machine) -> int | str | None:
    """The devices that share each batch, once this process has met the others, if there are any."""
    devices = machine.devices
    if machine.coordinator is not None:
        if devices not in (None, "all"):
            raise InputError("several processes share all their devices: leave --devices out")
        from piefs.training.runtime import join

        join(machine.coordinator, machine.num_processes, machine.process_id)
        devices = "all"
    elif machine.num_processes is not None or machine.process_id is not None:
        raise InputError("--num-processes and --process-id go with --coordinator HOST:PORT")
    if machine.device is not None:
        import jax

        try:
            jax.config.update("jax_default_device", jax.devices(machine.device)[0])
        except RuntimeError as error:
            found = ", ".join(sorted({one.platform for one in jax.devices()}))
            message = f"there is no device {machine.device!r} here; found: {found}"
            raise InputError(message) from error
    if devices in (None, "all"):
        return devices
    if not devices.isdigit() or devices == "0":
        raise InputError(f"--devices must be all or a number of devices, not {devices!r}")
    return int(devices)


def load_source(
    source: Source, *, lazy: bool | None = False
) -> tuple[Dataset, str, TableDetails | None]:
    """The data set, the task, and of a user's own table what else is known."""
    if source.data in BUILTIN:
        for name in source.given:
            if name not in ("task", "split-seed", "data-dir"):
                raise InputError(f"--{name} is for your own files; {source.data} is built-in")
        task = "classification" if source.task == "auto" else source.task
        return load(source.data, source.data_dir, source.split_seed), task, None
    path = Path(source.data)
    given: dict[str, Any] = {one.name: getattr(source, one.name) for one in fields(TableOptions)}
    given["drop"] = tuple(source.drop or ())
    own = load_table(path, TableOptions(**given), streamed=is_to_be_streamed(path, lazy))
    table = TableDetails(own.encoder, source.target, source.id_column, own.unlabeled, own.notices)
    return own.dataset, own.task, table


def _run(
    console: Console, data: Dataset, out: Path, devices: int | str | None = None, **options: Any
) -> dict[str, Any]:
    """The run, with a bar; what it warns of is told with the results."""
    from piefs.app.run import run
    from piefs.training.callbacks import ProgressBar
    from piefs.training.sharding import sharded

    with sharded(devices), warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        warnings.filterwarnings("ignore", "batch_size=.* is clipped")
        tell = partial(console.print, style="dim", soft_wrap=True)
        options |= {"clock": Clock(app.begun), "tell": tell, "callbacks": [ProgressBar(console)]}
        return run(data, out, **options)


def describe(console: Console, data: Dataset, table: TableDetails | None = None) -> None:
    """Say what the data are, and what becomes of their columns."""
    console.print(f"[bold]{escape(data.name)}[/bold]  {escape(data.description)}")
    sizes = ", ".join(f"{len(part):,} {name}" for name, part in data.splits.items())
    classes = f", {len(data.class_names)} classes" if len(data.class_names) > 1 else ""
    target = ", a number to predict" if data.is_regression else classes
    console.print(f"  {sizes} rows, {data.train.x.shape[1]} features{target}", style="dim")
    if table is None:
        return
    lines = table.encoder.describe()  # columns that are numbers and nothing more share one
    numbers = [line.removesuffix(": number") for line in lines if line.endswith(": number")]
    shared = [f"numbers: {', '.join(numbers)}"] if numbers else []
    others = [line for line in lines if not line.endswith(": number")]
    for notice in (*shared, *others, *table.notices):
        console.print(f"  {escape(notice)}", style="dim", soft_wrap=True)


def _tell_results(console: Console, metrics: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """The scores by split, what is to be known of them, the maps, then where everything is."""
    if not metrics:  # the first process tells
        return
    if as_json:
        print(json.dumps(metrics))
        return
    from piefs.report.scores import SHOWN
    from piefs.training.diagnosis import Finding, overfitting

    splits = list(metrics["gram_error"])
    scores = Table("", *splits)
    for name, label, form in SHOWN:
        if name in metrics:
            values = (metrics[name][split] for split in splits)
            scores.add_row(label, *("–" if value is None else form(value) for value in values))
    console.print(scores)
    if (gap := overfitting(metrics)) is not None:
        console.print(gap.message, style="dim", soft_wrap=True)
    for warning in metrics.get("warnings", ()):
        message = Finding.from_document(warning).message
        console.print(f"[yellow]Warning:[/yellow] {escape(message)}", soft_wrap=True)
    energies = ", ".join(f"{energy:.3g}" for energy in metrics["energies"])
    console.print(f"Energies of the {len(metrics['energies'])} maps: {energies}", soft_wrap=True)
    steps, saved = metrics["steps"], metrics["steps_saved"]
    if saved:
        saved = f"{saved:,} of {steps + saved:,} steps"
        console.print(f"Maps stopped once they no longer improved: {saved} were not needed.")
    rate = f", {metrics['steps_per_second']:,.0f} steps a second" if steps else ""
    where = f"Model, metrics and figures are in [bold]{out}[/bold]."
    console.print(f"{in_phases(metrics)}{rate}. {where}", soft_wrap=True)
    page = RunFolder(out).report
    if page.is_file():
        console.print(f"What was learned, on one page: [bold]{page}[/bold]", soft_wrap=True)
