"""`piefs demo` and `piefs fit`: what happens to the data, progress, then a table of results."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from piefs.app.config import read_config, use_device
from piefs.app.options import Company, Source
from piefs.app.run import RunFolder, described_data, run
from piefs.data import BUILTIN, Dataset, load
from piefs.data.documents import read_json, reading
from piefs.data.large_files import is_to_be_streamed
from piefs.data.large_tables import is_target_file, load_large
from piefs.data.tabular import load_own
from piefs.errors import InputError, TrainingWarning
from piefs.estimators.settings import n_rows_to_learn_from, resolve_settings
from piefs.report.findings import overfitting
from piefs.report.scores import SHOWN
from piefs.training.callbacks import ProgressBar
from piefs.training.diagnosis import Finding
from piefs.training.presets import PAPER
from piefs.training.processes import is_first
from piefs.training.sharding import devices_of

DEMO_SETTINGS: dict[str, Any] = {
    "preset": "default",
    "n_components": 8,
    "steps_per_component": 1000,
    "early_stopping": False,  # a demonstration need not try several weight decays
    "log_every": 50,
}


def demonstrate(out: Path, *, seed: int, quiet: bool, as_json: bool) -> None:
    """Two Moons with a small budget; a demo of its own starts over in its own folder."""
    console = Console(quiet=quiet or as_json)
    data = load("two-moons")
    tell_data(console, data)
    keywords = DEMO_SETTINGS | {"random_state": seed}
    metrics = _fit(console, data, out, force=True, **keywords)
    _tell_results(console, metrics, out, as_json=as_json)


def fit_data(
    source: Source,
    out: Path,
    *,
    quiet: bool,
    as_json: bool,
    resume: bool,
    config: Path | None,
    device: str | None,
    company: Company,
    **options: Any,
) -> None:
    """Fit on a built-in data set or on a user's own file."""
    options["devices"] = company.joined()
    use_device(device)
    console = Console(quiet=quiet or as_json or not is_first())
    given = {name: value for name, value in options.items() if value is not None}
    keywords = {"preset": "default"} | read_config(config) | given
    folder = RunFolder(out)
    if resume and devices_of(options["devices"]).any(is_first() and folder.is_finished):
        console.print(f"{out} is finished already.")
        with reading(folder.metrics, "fit again with --force"):
            metrics = read_json(folder.metrics)
            return _tell_results(console, metrics, out, as_json=as_json)
    dataset, extras, notices = load_source(source)
    tell_data(console, dataset)
    for notice in notices:
        console.print(f"  {escape(notice)}", style="dim", soft_wrap=True)
    if resume and not folder.is_unfinished:
        console.print(f"There is nothing to resume in {out}: starting from the beginning.")
    metrics = _fit(console, dataset, out, resume=resume, **extras, **keywords)
    _tell_results(console, metrics, out, as_json=as_json)


def load_source(source: Source) -> tuple[Dataset, dict[str, Any], list[str]]:
    """The data set, what `run` must know beside it, and what to tell the user."""
    if source.data in BUILTIN:
        return _load_builtin(source)
    if not Path(source.data).suffix and not Path(source.data).is_dir():
        raise InputError(
            f"unknown data set {source.data!r}; choose one of {', '.join(BUILTIN)}, or name a file "
            "(.csv, .tsv, .parquet, .arrow, .npz, .npy, .zarr)"
        )
    columns, path = source.columns, Path(source.data)
    streamed = is_target_file(columns.target) or is_to_be_streamed(path, source.lazy)
    read = load_large if streamed else load_own
    own = read(path, split_seed=source.split_seed, task=source.task, **asdict(columns))
    document = described_data(own.dataset, own.encoder, columns.target, columns.id_column)
    notices = [*own.encoder.describe(), *own.notices]
    extras = {
        **{"task": own.task, "document": document, "unlabeled": own.unlabeled},
        "notices": own.notices,
    }
    return own.dataset, extras, notices


def _load_builtin(source: Source) -> tuple[Dataset, dict[str, Any], list[str]]:
    """A built-in data set, whose columns, classes and splits are fixed."""
    is_built_in = f"is for your own files; {source.data!r} is a built-in data set"
    if given := list(source.columns.given()):
        raise InputError(f"--{given[0]} {is_built_in}")
    if source.task == "regression":
        raise InputError(f"--task regression {is_built_in}, and those are of classes")
    dataset = load(source.data, source.data_dir, source.split_seed)
    return dataset, {"task": "classification" if source.task == "auto" else source.task}, []


def _fit(console: Console, data: Dataset, out: Path, **keywords: Any) -> dict[str, Any]:
    unlabeled = keywords.get("unlabeled")
    n_rows = n_rows_to_learn_from(keywords.get("schedule"), data.train.x, unlabeled)
    if isinstance(keywords.get("batch_size"), int):
        keywords["batch_size"] = min(keywords["batch_size"], n_rows)
    given = {name: keywords[name] for name in PAPER if name in keywords}
    settings = resolve_settings(
        keywords["preset"],
        given,
        supervised=keywords.get("task") != "unsupervised",
        n_rows=n_rows,
    )
    if settings["batch_size"] == n_rows:
        console.print(f"  a batch is all {n_rows:,} training rows", style="dim")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # told with the results
        return run(data, out, **keywords, callbacks=[ProgressBar(console)])


def tell_data(console: Console, data: Dataset) -> None:
    """Say what the data are."""
    console.print(f"[bold]{escape(data.name)}[/bold]  {escape(data.description)}")
    sizes = ", ".join(f"{len(part):,} {name}" for name, part in data.splits.items())
    classes = f", {len(data.class_names)} classes" if len(data.class_names) > 1 else ""
    target = ", a number to predict" if data.is_regression else classes
    console.print(f"  {sizes} rows, {data.train.x.shape[1]} features{target}", style="dim")


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
    rate = f"{metrics['seconds']:.1f} s, {metrics['steps_per_second']:,.0f} steps a second."
    if metrics["steps_saved"]:
        total = metrics["steps"] + metrics["steps_saved"]
        saved = f"{metrics['steps_saved']:,} of {total:,} steps"
        console.print(f"Maps stopped when they were done: {saved} were not needed.")
    console.print(f"{rate} Model, metrics, history and figures are in [bold]{out}[/bold].")
    page = RunFolder(out).report
    if page.is_file():
        console.print(f"What was learned, on one page: [bold]{page}[/bold]")


def _energy_table(energies: list[float]) -> Table:
    """Energies of the maps, eight to a row so that narrow terminals can show them."""
    table = Table("map", *(str(k + 1) for k in range(min(8, len(energies)))))
    for start in range(0, len(energies), 8):
        label = "energy" if start == 0 else f"{start + 1} …"
        table.add_row(label, *(f"{energy:.3g}" for energy in energies[start : start + 8]))
    return table
