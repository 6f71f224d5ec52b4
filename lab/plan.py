"""`python -m lab.plan`: what a training will cost on so many devices, printed or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.costs import HARDWARE, METRICS, SMALL_MESSAGES, Hardware, Plan, Work
from piefs.errors import InputError

FIGURES = {
    "flops": (1e9, "--gflops", "GFLOP/s that one device multiplies at its best"),
    "share": (1.0, "--share", "the part of it that steps reach"),
    "latency": (1.0, "--latency", "seconds of one hop of a message"),
    "bandwidth": (1.0, "--bandwidth", "bytes a second between devices"),
    "reading": (1.0, "--reading", "bytes a second from a host's disks"),
}
"""Figures of the hardware that a user may know better: unit, option and meaning."""


def hardware_of(name: str, **given: float | None) -> Hardware:
    """The named hardware, with the figures that the user knows better."""
    if name not in HARDWARE:
        raise InputError(f"unknown hardware {name!r}; there are {', '.join(HARDWARE)}")
    known = {key: value for key, value in given.items() if value is not None}
    for key, value in known.items():
        if not value > 0:
            raise InputError(f"{key} must be positive, not {value!r}")
    return replace(HARDWARE[name], **known)


def show_plan(work: Work, hardware: Hardware, n_devices: int, console: Console) -> None:
    """The costs of a step and of the whole, on one device and on all."""
    plans = [Plan(work, hardware, n) for n in sorted({1, n_devices})]
    console.print(
        f"[bold]{work.n_rows:,} rows[/bold] of {work.n_features:,} features, K = "
        f"{work.n_components}, {work.schedule}, metric {work.metric}: {work.n_steps:,} steps of "
        f"{work.batch_size:,} rows on {hardware.name}"
    )
    table = Table("", *(f"{p.n_devices} device{'s' * (p.n_devices > 1)}" for p in plans))
    for label, shown in ROWS:
        table.add_row(label, *(shown(plan) for plan in plans))
    console.print(table)
    console.print(
        "An estimate from counted arithmetic and the figures of the hardware (docs/plan.md); give "
        "--gflops, --share, --latency, --bandwidth and --reading if you know better.",
        style="dim",
    )


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def size(n_bytes: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= length:
            return f"{n_bytes / length:.3g} {unit}"
    return f"{n_bytes:.0f} B"


ROWS: list[tuple[str, Any]] = [
    ("hosts", lambda p: str(p.n_hosts)),
    ("arithmetic of a step, each", lambda p: f"{p.flops / 1e9:.3g} GFLOP"),
    ("messages of a step", lambda p: str(SMALL_MESSAGES + 1 if p.n_devices > 1 else 0)),
    ("largest message", lambda p: size(p.gradient_bytes) if p.n_devices > 1 else "–"),
    ("a step: arithmetic", lambda p: duration(p.compute_seconds)),
    ("a step: messages", lambda p: duration(p.message_seconds) if p.n_devices > 1 else "–"),
    ("a step: reading, beside it", lambda p: duration(p.reading_seconds)),
    ("what limits a step", lambda p: p.limit),
    ("training", lambda p: duration(p.training_seconds)),
    ("passes over the table", lambda p: duration(p.pass_seconds)),
    ("in all", lambda p: duration(p.seconds)),
    ("efficiency", lambda p: f"{p.efficiency:.0%}"),
    ("coordinates of all rows", lambda p: size(p.coordinates_bytes)),
]


def _figures(plan: Plan) -> dict[str, Any]:
    names = ("n_devices", "n_hosts", "flops", "gradient_bytes", "compute_seconds")
    names += ("message_seconds", "reading_seconds", "step_seconds", "training_seconds")
    names += ("limit", "pass_seconds", "seconds", "efficiency", "coordinates_bytes")
    return {"n_steps": plan.work.n_steps} | {name: getattr(plan, name) for name in names}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab.plan", description=__doc__)
    parser.add_argument("--rows", type=float, required=True, help="rows of the table, e.g. 1e9")
    parser.add_argument("--features", type=int, required=True)
    parser.add_argument("-k", "--n-components", type=int, default=16)
    parser.add_argument("--classes", type=int, default=10, help="classes, or outputs")
    parser.add_argument("--metric", default="off", help=f"of: {', '.join(METRICS)}")
    parser.add_argument("--batch-size", type=int, default=4096, help="rows of a step, in all")
    parser.add_argument("--epochs", type=float, default=1.0, help="how often a turn sees each row")
    parser.add_argument("--schedule", default="nested", choices=("nested", "joint", "sequential"))
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--hardware", default="cpu", help=f"of: {', '.join(HARDWARE)}")
    for name, (_, option, meaning) in FIGURES.items():
        parser.add_argument(option, type=float, dest=name, help=meaning)
    parser.add_argument("--json", action="store_true")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the plan that the command line asks for."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    given = {
        name: None if (value := getattr(asked, name)) is None else unit * value
        for name, (unit, *_) in FIGURES.items()
    }
    try:
        work = Work(
            round(asked.rows),
            asked.features,
            n_components=asked.n_components,
            n_outputs=asked.classes,
            metric=asked.metric,
            batch_size=asked.batch_size,
            epochs=asked.epochs,
            schedule=asked.schedule,
        )
        hardware = hardware_of(asked.hardware, **given)
        if asked.devices < 1:
            raise InputError(f"devices must be positive, not {asked.devices}")
    except InputError as error:
        parser.error(str(error))
    if asked.json:
        print(json.dumps(_figures(Plan(work, hardware, asked.devices))))
    else:
        show_plan(work, hardware, asked.devices, Console())


if __name__ == "__main__":
    main()
