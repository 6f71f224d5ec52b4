"""The sound files that mutations start from, made by piefs itself: one folder a target."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import parquet
from zarr.codecs import GzipCodec

from piefs import Checkpoint, PIEFSClassifier
from piefs.app.run import TableDetails, run
from piefs.app.search import tune
from piefs.data.readers import write_blocks
from piefs.data.tabular import TableOptions, load_table
from piefs.errors import TrainingWarning
from reproduction.cells import Cell
from reproduction.records import Records
from reproduction.runs import read_history

SMALL = {
    "n_components": 2,
    "steps_per_component": 20,
    "batch_size": 32,
    "hidden": (4,),
    "early_stopping": False,
    "random_state": 0,
    "optimizer": {"log_every": 10},
}
FIXED = {name: value for name, value in SMALL.items() if name != "random_state"}
NUMBERS = ("height", "width", "count")
CELL = Cell("two-moons", "piefs-off", "supervised", "paper", 0)


def make_seeds(folder: Path) -> None:
    """All of them; it takes some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        _tables(folder)
        _large_tables(folder)
        _run(folder)
        _checkpoint(folder / "checkpoint")
        _tuning(folder / "tuning")
    _config(folder / "config")


def columns(n: int = 60) -> dict[str, np.ndarray]:
    """Numbers, a category, a date, yes or no, and two classes."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(n)
    x = rng.normal(size=(n, 2)).round(3)
    return {
        "height": x[:, 0],
        "width": x[:, 1],
        "count": rng.integers(0, 9, n),
        "colour": np.array(["red", "green", "blue"], object)[rng.integers(0, 3, n)],
        "smooth": np.array(["yes", "no"], object)[rng.integers(0, 2, n)],
        "day": days.astype(str).astype(object),
        "kind": np.array(["a", "b"], object)[(x[:, 0] * x[:, 1] > 0).astype(int)],
    }


def rows() -> tuple[np.ndarray, np.ndarray]:
    """A small problem of two classes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


def _tables(folder: Path) -> None:
    made = columns()
    numbers = {name: made[name] for name in NUMBERS}
    for kind in ("csv", "npz", "parquet", "arrow"):
        write_blocks(folder / kind / f"table.{kind}", [made], 60)
    write_blocks(folder / "npy" / "table.npy", [numbers], 60)


def _large_tables(folder: Path) -> None:
    """Of several row groups or chunks, in one file and in several."""
    made = columns()
    matrix = np.column_stack([made[name] for name in NUMBERS])
    table = pa.table(made)
    for kind in ("npy", "parquet", "zarr"):
        (folder / f"large-{kind}").mkdir(parents=True)
    np.save(folder / "large-npy" / "table.npy", matrix.astype(np.float32))
    parquet.write_table(table, folder / "large-parquet" / "table.parquet", row_group_size=25)
    (folder / "large-parquet" / "parts").mkdir()
    for i in range(2):
        part = folder / "large-parquet" / "parts" / f"{i}.parquet"
        parquet.write_table(table[30 * i : 30 * i + 30], part, compression="zstd")
    layouts: dict[str, dict[str, Any]] = {
        "plain": {"chunks": (30, 3), "zarr_format": 2, "compressors": None},
        "old": {"chunks": (60, 2), "zarr_format": 2, "compressors": numcodecs.Blosc()},
        "new": {"chunks": (30, 3), "compressors": GzipCodec()},
        "sharded": {"chunks": (20, 3), "shards": (60, 3)},
    }
    for name, layout in layouts.items():
        zarr.create_array(str(folder / "large-zarr" / f"{name}.zarr"), data=matrix, **layout)


def _run(folder: Path) -> None:
    """A run's folder, its model, and a record such as `piefs reproduce` keeps."""
    own = load_table(folder / "csv" / "table.csv", TableOptions("kind"))
    table = TableDetails(own.encoder, "kind")
    run(own.dataset, folder / "run", task=own.task, table=table, **SMALL)
    shutil.copytree(folder / "run" / "model", folder / "model")
    shutil.rmtree(folder / "run" / "figures")
    (folder / "run" / "report.html").unlink()
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    metrics |= {"gram_matrix": {"validation": [[1.0, 0.0], [0.0, 1.0]]}}
    records = Records(folder / "records" / "records")
    records.write(CELL, metrics, read_history(folder / "run" / "history.csv"))
    grid = np.linspace(-1, 1, 5)
    names = ("phi1", "phi2", "phi3", "margin")
    plane = {name: np.outer(grid, grid).astype(np.float32) for name in names}
    records.plane(CELL).parent.mkdir()
    np.savez_compressed(records.plane(CELL), x1=grid, x2=grid, **plane)


def _checkpoint(folder: Path) -> None:
    folder.mkdir(parents=True)

    def cut(state: object) -> None:
        raise KeyboardInterrupt

    kept = Checkpoint(folder / "checkpoint.safetensors", every_seconds=0)
    try:
        PIEFSClassifier(**SMALL, solver="sequential", callbacks=[kept, cut]).fit(*rows())
    except KeyboardInterrupt:
        return


def _tuning(folder: Path) -> None:
    tune(*rows(), n_trials=1, fixed=FIXED, out=folder)


def _config(folder: Path) -> None:
    folder.mkdir(parents=True)
    settings = {"preset": "default", "n_components": 8, "learning_rate": 0.002, "hidden": [32, 32]}
    (folder / "settings.json").write_text(json.dumps(settings))
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (folder / "settings.toml").write_text("\n".join(lines))
