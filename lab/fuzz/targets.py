"""The readers under attack: what each does with a folder that may hold anything."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from rich.console import Console

from lab.fuzz.mutations import mutate
from lab.fuzz.seeds import FIXED, NUMBERS, SMALL, rows
from piefs import Checkpoint, PIEFSClassifier, open_rows
from piefs.app.fit import read_config
from piefs.app.model import open_model, tell_model
from piefs.app.search import Search, tuning_data
from piefs.data.encoder import TableEncoder
from piefs.data.files import reading
from piefs.data.readers import read_table
from piefs.data.rows import blocks_of
from piefs.data.streamed import is_to_be_streamed, open_streamed
from piefs.data.tabular import TableOptions, load_table
from piefs.estimators.decisions import Facts, decided
from piefs.report import page
from piefs.training.checkpoint import arrays_digest
from piefs.training.config import Settings
from reproduction import report as paper_report

DRAWN_EVERY = 1000
"""Pictures take a hundred times as long as the rest of a page: so many pages have one with them."""


@dataclass(frozen=True)
class Target:
    """A reader of a folder, and whether it draws pictures of what it reads."""

    read: Callable[[Path], object]
    draws: bool = False


def _table(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        table = read_table(path)
        TableEncoder.fit(table, "impute").describe()


def _arrays(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        _in_blocks(path, None, "x2")


def _parquet(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        _in_blocks(path, NUMBERS, "kind")


def _in_blocks(path: Path, columns: Sequence[str] | None, target: str) -> None:
    """All rows block by block, as a program reads them and as `piefs fit` does."""
    for _ in blocks_of(open_rows(path, columns)):
        pass
    is_to_be_streamed(path, None)
    for _ in open_streamed(path).blocks():
        pass
    own = load_table(path, TableOptions(target, missing="impute"), streamed=True)
    for _ in blocks_of(own.dataset.train.x):
        pass


def _model(folder: Path) -> None:
    opened = open_model(folder)
    with reading(folder):  # as `show_model` does, which would load the model again
        tell_model(opened, Console(file=io.StringIO(), highlight=False))
    opened.estimator.transform(np.zeros((1, opened.estimator.n_features_in_)))


class _CaughtError(Exception):
    """Carries what a fit would start from."""


class _Catching(Checkpoint):
    def restore(self, fresh: Any) -> Any:
        raise _CaughtError(fresh)


@cache
def _beginning() -> tuple[Any, Any]:
    """A checkpoint that knows its run, and the fresh state of that run."""
    catching = _Catching("nowhere", resume=True)
    try:
        PIEFSClassifier(**SMALL, solver="sequential", callbacks=[catching]).fit(*rows())
    except _CaughtError as caught:
        return catching, caught.args[0]
    raise AssertionError("the fit did not ask its checkpoint")


def _checkpoint(folder: Path) -> None:
    catching, fresh = _beginning()
    checkpoint = Checkpoint(folder / "checkpoint.safetensors", resume=True)
    checkpoint._run = catching._run
    checkpoint.restore(fresh)


def _tuning(folder: Path) -> None:
    given = {"standardize": True, **FIXED, "random_state": 0}
    search = Search(tuning_data(*rows(), None, None, given), FIXED, 0, folder)
    search.resume()
    if "{}" in search.records:
        search.verdict()


def _config(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        settings = read_config(path)
        given = {name: value for name, value in settings.items() if name != "class_weight"}
        decided(Settings.of(**given), Facts(60))


TARGETS: dict[str, Target] = {
    "csv": Target(_table),
    "npz": Target(_table),
    "npy": Target(_table),
    "parquet": Target(_table),
    "arrow": Target(_table),
    "large-npy": Target(_arrays),
    "large-parquet": Target(_parquet),
    "large-zarr": Target(_arrays),
    "model": Target(_model),
    "checkpoint": Target(_checkpoint),
    "run": Target(page.write_page, draws=True),
    "records": Target(paper_report.write_report, draws=True),
    "tuning": Target(_tuning),
    "config": Target(_config),
}


def spoil(seeds: Path, folder: Path, rng: random.Random) -> None:
    """A copy of the sound files with one of them spoiled, and often its checksum put right."""
    files = {
        str(p.relative_to(seeds)): p.read_bytes() for p in sorted(seeds.rglob("*")) if p.is_file()
    }
    name = rng.choice(sorted(files))
    files[name] = mutate(name, files[name], rng)
    if name.endswith(".safetensors") and rng.random() < 0.8:
        _put_right(files, name)
    for one, content in files.items():
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_bytes(content)


def _put_right(files: dict[str, bytes], name: str) -> None:
    """Checksums that agree with the spoiled content: who spoils on purpose does that too."""
    folder = name.rpartition("/")[0]
    document = f"{folder}/model.json".lstrip("/")
    if document in files:
        about = json.loads(files[document])
        about["weights_sha256"] = hashlib.sha256(files[name]).hexdigest()
        files[document] = json.dumps(about).encode()
        return
    with contextlib.suppress(Exception):  # some cannot be put right
        arrays = safetensors.numpy.load(files[name])
        size = int.from_bytes(files[name][:8], "little")
        about = json.loads(json.loads(files[name][8 : 8 + size])["__metadata__"]["piefs"])
        about["digest"] = arrays_digest(arrays)
        files[name] = safetensors.numpy.save(arrays, metadata={"piefs": json.dumps(about)})


def read(target: Target, folder: Path, *, draw: bool) -> None:
    """Let the reader at a folder, with its pictures or without."""
    if not target.draws or draw:
        target.read(folder)
        return
    with _undrawn():
        target.read(folder)


@contextlib.contextmanager
def _undrawn() -> Any:
    drawn = page.as_svg, paper_report.draw_all
    page.as_svg = lambda name, draw: ""
    paper_report.draw_all = lambda records, folder: {}
    try:
        yield
    finally:
        page.as_svg, paper_report.draw_all = drawn
