"""`piefs demo` and `piefs fit`: what becomes of the data, progress, then a table of results."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from piefs.app.options import LargeSource, Machine, ModelOptions, Source
from piefs.app.run import RunFolder, TableDetails, run
from piefs.data import BUILTIN, Dataset, load
from piefs.data.files import read_document, reading
from piefs.data.streamed import is_to_be_streamed
from piefs.data.tabular import TableOptions, is_target_file, load_table
from piefs.errors import InputError, TrainingWarning
from piefs.estimators.decisions import Facts, decided, rows_to_learn_from
from piefs.estimators.keywords import SHARED
from piefs.report.scores import SHOWN
from piefs.training.config import Settings
from piefs.training.diagnosis import Finding, overfitting
from piefs.training.progress import ProgressBar
from piefs.training.runtime import is_first, join
from piefs.training.sharding import devices_of, sharded

KEYWORDS = (*SHARED, "preset", "class_weight")
DEMO_SETTINGS: dict[str, Any] = {
    "preset": "default",
    "n_components": 8,
    "steps_per_component": 1000,
    "early_stopping": False,
    "optimizer": {"log_every": 50},
}


def demonstrate(out: Path, *, seed: int, quiet: bool, as_json: bool) -> None:
    """Two Moons with a small budget; the demo starts over in its folder each time."""
    console = Console(quiet=quiet or as_json)
    data = load("two-moons")
    describe(console, data)
    keywords = DEMO_SETTINGS | {"random_state": seed}
    metrics = _fit(console, data, out, force=True, **keywords)
    _tell_results(console, metrics, out, as_json=as_json)


def fit_data(
    source: LargeSource,
    out: Path,
    model: ModelOptions,
    machine: Machine,
    *,
    quiet: bool,
    as_json: bool,
    resume: bool,
    **options: Any,
) -> None:
    """Fit on a built-in data set or on a user's own file."""
    devices = joined(machine)
    console = Console(quiet=quiet or as_json or not is_first())
    keywords = {"preset": "default"} | _merged(read_config(model.config), model.given)
    folder = RunFolder(out)
    if resume and devices_of(devices).any(is_first() and folder.is_finished):
        console.print(f"{out} is finished already.")
        with reading(folder.metrics, "fit again with --force"):
            return _tell_results(console, read_document(folder.metrics), out, as_json=as_json)
    data, task, table = load_source(source)
    describe(console, data, table)
    if resume and not folder.is_unfinished:
        console.print(f"There is nothing to resume in {out}: starting from the beginning.")
    options |= {"task": task, "table": table, "resume": resume}
    with sharded(devices):
        metrics = _fit(console, data, out, **options, **keywords)
    _tell_results(console, metrics, out, as_json=as_json)


def load_source(source: Source) -> tuple[Dataset, str, TableDetails | None]:
    """The data set, the task, and of a user's own table what else is known."""
    path = Path(source.data)
    if source.data in BUILTIN:
        return *_load_builtin(source), None
    if not path.suffix and not path.is_dir():
        raise InputError(
            f"unknown data set {source.data!r}; choose one of {', '.join(BUILTIN)}, or name a file "
            "(.csv, .tsv, .parquet, .arrow, .npz, .npy, .zarr)"
        )
    lazy = source.lazy if isinstance(source, LargeSource) else False
    is_streamed = is_target_file(source.target) or is_to_be_streamed(path, lazy)
    options = TableOptions(split_seed=source.split_seed, task=source.task, **source.columns)
    own = load_table(path, options, streamed=is_streamed)
    table = TableDetails(own.encoder, source.target, source.id_column, own.unlabeled, own.notices)
    return own.dataset, own.task, table


def _load_builtin(source: Source) -> tuple[Dataset, str]:
    """A built-in data set, whose columns, classes and splits are fixed."""
    is_built_in = f"is for your own files; {source.data!r} is a built-in data set"
    if given := list(source.given):
        raise InputError(f"--{given[0]} {is_built_in}")
    if source.task == "regression":
        raise InputError(f"--task regression {is_built_in}, and those are of classes")
    dataset = load(source.data, source.data_dir, source.split_seed)
    return dataset, "classification" if source.task == "auto" else source.task


def _merged(config: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file and of options, which win; a metric's are put together."""
    found = config | options
    if isinstance(given := options.get("metric"), dict):
        metric = config.get("metric", {})
        found["metric"] = ({"name": metric} if isinstance(metric, str) else metric) | given
    return found


def read_config(path: Path | None) -> dict[str, Any]:
    """The settings in a `--config` file; an unknown name or an unreadable file is an InputError."""
    if path is None:
        return {}
    remedy = "give a TOML or JSON file of settings, such as batch_size = 512"
    if not path.is_file():
        raise InputError(f"cannot read {path} (there is no such file); {remedy}")
    settings = read_document(path, remedy)
    for name in settings:
        if name not in KEYWORDS:
            raise InputError(f"{path}: unknown setting {name!r}; known are {', '.join(KEYWORDS)}")
    return settings


def joined(machine: Machine) -> int | str | None:
    """The devices that share each batch, once this process has met the others, if there are any."""
    devices = "all" if machine.devices is None and machine.coordinator else machine.devices
    if machine.coordinator is not None:
        if devices != "all":
            raise InputError("several processes share all their devices: leave --devices out")
        join(machine.coordinator, machine.num_processes, machine.process_id)
    elif machine.num_processes is not None or machine.process_id is not None:
        raise InputError("--num-processes and --process-id go with --coordinator HOST:PORT")
    use_device(machine.device)
    if devices is None or devices == "all":
        return devices
    if not devices.isdigit() or devices == "0":
        raise InputError(f"--devices must be all or a number of devices, not {devices!r}")
    return int(devices)


def use_device(name: str | None) -> None:
    """Compute on a kind of device (cpu, gpu, tpu)."""
    if name is None:
        return
    import jax

    try:
        jax.config.update("jax_default_device", jax.devices(name)[0])
    except RuntimeError as error:
        found = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise InputError(f"there is no device {name!r} here; found: {found}") from error


def _fit(console: Console, data: Dataset, out: Path, **keywords: Any) -> dict[str, Any]:
    table = keywords.get("table")
    unlabeled = None if table is None else table.unlabeled
    n_rows = rows_to_learn_from(keywords.get("solver"), data.train.x, unlabeled)
    if isinstance(keywords.get("batch_size"), int):
        keywords["batch_size"] = min(keywords["batch_size"], n_rows)
    given = {name: keywords[name] for name in SHARED if name in keywords}
    asked = Settings.of(keywords["preset"], **given)
    facts = Facts(n_rows, is_supervised=keywords.get("task") != "unsupervised")
    if decided(asked, facts).batch_size == n_rows:
        console.print(f"  a batch is all {n_rows:,} training rows", style="dim")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # told with the results
        return run(data, out, **keywords, callbacks=[ProgressBar(console)])


def describe(console: Console, data: Dataset, table: TableDetails | None = None) -> None:
    """Say what the data are, and what becomes of their columns."""
    console.print(f"[bold]{escape(data.name)}[/bold]  {escape(data.description)}")
    sizes = ", ".join(f"{len(part):,} {name}" for name, part in data.splits.items())
    classes = f", {len(data.class_names)} classes" if len(data.class_names) > 1 else ""
    target = ", a number to predict" if data.is_regression else classes
    console.print(f"  {sizes} rows, {data.train.x.shape[1]} features{target}", style="dim")
    notices = [] if table is None else [*table.encoder.describe(), *table.notices]
    for notice in notices:
        console.print(f"  {escape(notice)}", style="dim", soft_wrap=True)


def _tell_results(console: Console, metrics: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """The headline: scores by split, then the maps, then where everything is."""
    if not is_first():
        return
    if as_json:
        print(json.dumps(metrics))
        return
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
    console.print(_energy_table(metrics["energies"]))
    if metrics["steps_saved"]:
        total = metrics["steps"] + metrics["steps_saved"]
        saved = f"{metrics['steps_saved']:,} of {total:,} steps"
        console.print(f"Maps stopped once they no longer improved: {saved} were not needed.")
    rate = f"{metrics['seconds']:.1f} s, {metrics['steps_per_second']:,.0f} steps a second."
    where = f"Model, metrics, history and figures are in [bold]{out}[/bold]."
    console.print(f"{rate} {where}", soft_wrap=True)
    page = RunFolder(out).report
    if page.is_file():
        console.print(f"What was learned, on one page: [bold]{page}[/bold]", soft_wrap=True)


def _energy_table(energies: list[float]) -> Table:
    """Energies of the maps, eight to a row so that narrow terminals can show them."""
    table = Table("map", *(str(k + 1) for k in range(min(8, len(energies)))))
    for start in range(0, len(energies), 8):
        label = "energy" if start == 0 else f"{start + 1} …"
        table.add_row(label, *(f"{energy:.3g}" for energy in energies[start : start + 8]))
    return table
