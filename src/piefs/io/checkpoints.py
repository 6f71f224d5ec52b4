"""Checkpoints: a training state in one file, written atomically, checked when read.

`Checkpoint` is a callback for training. A run that was killed at any moment continues from its
last checkpoint and ends at the same model, bit for bit, because which rows a step sees depends
only on the seed and the step.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from piefs.batches import Samples
from piefs.devices import ONE
from piefs.errors import InputError, PiefsError
from piefs.io import atomic
from piefs.io.models import ModelFileError, flatten, unflatten
from piefs.maps import is_single, stack, unstack
from piefs.sources import LazyRows
from piefs.state import TrainState

CHECKPOINT_VERSION = 3
DIGEST_ROWS = 1000  # of rows that are read when needed: reading all would take as long as a pass
PLAIN_FIELDS = ("k", "step", "energies", "log_scale_ranges", "steps", "interval")
PLAIN_FIELDS += ("history", "rate_cuts")


class CheckpointError(PiefsError, ValueError):
    """A checkpoint that cannot be read."""


class Checkpoint:
    """A callback that keeps the newest state of a run in a file.

    Parameters
    ----------
    path
        The file. Its folder is made if need be.
    every_seconds
        The least time between two writes; 0 writes after every chunk of steps.
    resume
        Continue from the file if it is there.
    """

    def __init__(
        self, path: str | Path, *, every_seconds: float = 10.0, resume: bool = False
    ) -> None:
        self.path = Path(path)
        self.every_seconds = every_seconds
        self.resume = resume
        self.seconds_before = 0.0
        self._fingerprint: dict[str, Any] = {}
        self._devices = ONE
        self._started = self._written = time.monotonic()

    def bind(self, settings: dict[str, Any], seed: int, samples: Samples) -> None:
        """Say which run this is: a checkpoint of another one will be refused."""
        self._fingerprint = {"settings": settings, "seed": seed, "data": data_digest(samples)}
        self._devices = samples.devices
        self._started = self._written = time.monotonic()

    def __call__(self, state: TrainState) -> None:
        """Write the state if the last write is long enough ago."""
        if self._devices.process == 0 and time.monotonic() - self._written >= self.every_seconds:
            self.write(state)
            self._written = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time spent on the run so far, earlier sittings included."""
        return self.seconds_before + time.monotonic() - self._started

    def write(self, state: TrainState) -> None:
        """Write the state now."""
        arrays = _arrays(state)
        document = {
            "version": CHECKPOINT_VERSION,
            "fingerprint": self._fingerprint,
            "seconds": self.seconds,
            "digest": arrays_digest(arrays),
            **{name: getattr(state, name) for name in PLAIN_FIELDS},
        }
        content = safetensors.numpy.save(arrays, metadata={"piefs": json.dumps(document)})
        atomic.write_bytes(self.path, content)

    def restore(self, fresh: TrainState) -> TrainState:
        """The state to go on from: the file's, or the fresh one if there is no file.

        Of several processes the first one reads the file and tells the others.
        """
        content = self._devices.told_by_first(self._content())
        if content is None:
            return fresh
        arrays, document = _read(self.path, content)
        self._check_same_run(document["fingerprint"])
        self.seconds_before = float(document["seconds"])
        try:
            return _rebuild(fresh, arrays, document)
        except (ModelFileError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.path} does not fit this run ({error})") from error

    def _content(self) -> bytes | None:
        if not self.resume or self._devices.process > 0 or not self.path.is_file():
            return None
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{self.path} cannot be read ({error.strerror})") from error

    def _check_same_run(self, found: dict[str, Any]) -> None:
        if found["data"] != self._fingerprint["data"]:
            raise InputError(f"{self.path} belongs to a run on other data; start over with --force")
        ours, theirs = (f["settings"] | {"seed": f["seed"]} for f in (self._fingerprint, found))
        ours, theirs = json.loads(json.dumps(ours)), theirs
        differing = [name for name in ours if ours[name] != theirs.get(name)]
        if differing:
            name = differing[0]
            raise InputError(
                f"{self.path} belongs to a run with {name}={theirs.get(name)!r}, not "
                f"{ours[name]!r}; use the same settings, or start over with --force"
            )


def _arrays(state: TrainState) -> dict[str, np.ndarray]:
    tree: dict[str, Any] = {"params": state.params, "opt_state": state.opt_state}
    if state.frozen:
        tree["frozen"] = stack(state.frozen)
    return {name: np.asarray(array, order="C") for name, array in flatten(tree).items()}


def _rebuild(
    fresh: TrainState, arrays: dict[str, np.ndarray], document: dict[str, Any]
) -> TrainState:
    """A state with the file's values in the shapes of a fresh one."""
    k = int(document["k"])
    like: dict[str, Any] = {"params": fresh.params, "opt_state": fresh.opt_state}
    if k:
        one = fresh.params.phi
        like["frozen"] = stack([one] * k) if is_single(one) else one
    tree = unflatten(like, arrays)
    count, sums = document["interval"]
    return replace(
        fresh,
        k=k,
        step=int(document["step"]),
        params=_on_device(tree["params"]),
        opt_state=_on_device(tree["opt_state"]),
        frozen=tuple(unstack(_on_device(tree["frozen"]))) if k else (),
        energies=tuple(map(float, document["energies"])),
        log_scale_ranges=tuple((float(a), float(b)) for a, b in document["log_scale_ranges"]),
        steps=tuple(map(int, document["steps"])),
        interval=(int(count), tuple(map(float, sums))),
        history=tuple(dict(row) for row in document["history"]),
        rate_cuts=tuple(map(int, document["rate_cuts"])),
    )


def _on_device(tree: Any) -> Any:
    import jax

    return jax.tree.map(jax.numpy.array, tree)


def _read(path: Path, content: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the document of a checkpoint, checked against each other."""
    try:
        header_size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + header_size])
        document = json.loads(header["__metadata__"]["piefs"])
        arrays = safetensors.numpy.load(content)
        version, digest = document["version"], document["digest"]
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(
            f"{path} is damaged and cannot be resumed from ({error}); start over with --force"
        ) from error
    if version != CHECKPOINT_VERSION:
        raise CheckpointError(f"{path} was written by another version; start over with --force")
    if arrays_digest(arrays) != digest:
        raise CheckpointError(f"{path} is damaged: its checksum differs; start over with --force")
    return arrays, document


def arrays_digest(arrays: dict[str, np.ndarray]) -> str:
    """A checksum over names, shapes and bytes."""
    checksum = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        checksum.update(f"{name}{array.dtype}{array.shape}".encode())
        checksum.update(array.data)
    return checksum.hexdigest()


def data_digest(samples: Samples) -> str:
    """A checksum of the training data; of rows that are read when needed, of some spread over."""
    x = samples.x
    if isinstance(x, LazyRows):
        x = x[np.linspace(0, len(x) - 1, min(len(x), DIGEST_ROWS)).astype(int)]
    return arrays_digest(
        {
            "x": np.asarray(x),
            "target": samples.targets,
            "weight": samples.weights,
            "label_weight": samples.label_weights,
        }
    )
