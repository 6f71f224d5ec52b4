"""`piefs demo` and `piefs fit`: progress while training, then a table of what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from piefs.datasets import Dataset, load
from piefs.presets import resolve
from piefs.runs import run
from piefs.train import Callback, TrainState

DEMO_SETTINGS: dict[str, Any] = {
    "preset": "paper",
    "n_components": 8,
    "steps_per_component": 600,
    "batch_size": 1024,
    "learning_rate": 2e-3,
}


def demonstrate(out: Path, *, seed: int, quiet: bool, as_json: bool) -> None:
    """Two Moons with a small budget, so that the whole takes well under a minute."""
    settings = DEMO_SETTINGS | {"random_state": seed, "log_every": 50}
    _fit_and_show(load("two-moons"), out, quiet=quiet, as_json=as_json, **settings)


def fit_builtin(
    name: str,
    out: Path,
    *,
    data_dir: Path | None,
    split_seed: int,
    quiet: bool,
    as_json: bool,
    **keywords: Any,
) -> None:
    """Fit on a built-in data set."""
    data = load(name, data_dir, split_seed)
    _fit_and_show(data, out, quiet=quiet, as_json=as_json, **keywords)


def _fit_and_show(data: Dataset, out: Path, *, quiet: bool, as_json: bool, **keywords: Any) -> None:
    console = Console(quiet=quiet or as_json)
    console.print(f"[bold]{data.name}[/bold]  {data.description}")
    sizes = ", ".join(f"{len(part):,} {name}" for name, part in data.splits.items())
    console.print(f"{sizes} rows, {data.train.x.shape[1]} features", style="dim")
    training = {name: value for name, value in keywords.items() if name != "task"}
    n_components, steps = _budget(training)
    with _progress(console, n_components, steps) as callback:
        metrics = run(data, out, **keywords, callbacks=[callback])
    if as_json:
        print(json.dumps(metrics))
    else:
        _show(console, metrics, out)


def _budget(keywords: dict[str, Any]) -> tuple[int, int]:
    settings = resolve(
        keywords["preset"],
        n_components=keywords.get("n_components"),
        steps_per_component=keywords.get("steps_per_component"),
    )
    return settings["n_components"], settings["steps_per_component"]


@contextmanager
def _progress(console: Console, n_components: int, steps: int) -> Iterator[Callback]:
    """A progress bar on a terminal, nothing elsewhere; yields the callback that moves it."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(f"map 1 of {n_components}", total=n_components * steps, note="")

        def update(state: TrainState) -> None:
            accuracy = state.history[-1].get("validation_accuracy") if state.history else None
            bar.update(
                task,
                completed=state.k * steps + state.step,
                description=f"map {min(state.k + 1, n_components)} of {n_components}",
                note="" if accuracy is None else f"validation {100 * accuracy:.1f} %",
            )

        yield update


def _show(console: Console, metrics: dict[str, Any], out: Path) -> None:
    """The headline: scores by split, then the maps, then where everything is."""
    splits = ("train", "validation", "test")
    scores = Table("", *splits, title="Scores", title_justify="left")
    for name, label, form in (
        ("accuracy", "accuracy, %", lambda v: f"{100 * v:.2f}"),
        ("log_loss", "log loss", lambda v: f"{v:.4f}"),
        ("gram_error", "Gram error ‖C − I‖²", lambda v: f"{v:.4f}"),
    ):
        scores.add_row(label, *(form(metrics[name][split]) for split in splits))
    console.print(scores)
    energies = metrics["energies"]
    maps = Table("map", *(str(k + 1) for k in range(len(energies))), title_justify="left")
    maps.add_row("energy", *(f"{energy:.3g}" for energy in energies))
    console.print(maps)
    console.print(
        f"{metrics['seconds']:.1f} s, {metrics['steps_per_second']:,.0f} steps a second. "
        f"Model, metrics, history and figures are in [bold]{out}[/bold]."
    )
