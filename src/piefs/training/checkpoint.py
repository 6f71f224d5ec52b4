"""Checkpoints: a training state in one file, written whole or not at all, checked when read.

The last but one is kept beside it, and used if the newest is damaged. `Checkpoint` is a callback
for training. A run that was killed at any moment continues from its last checkpoint and ends at
the same model, bit for bit, because the rows of a step depend only on the seed and the step.
"""

import hashlib
import json
import time
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from piefs.core.maps import is_single, stack, unstack
from piefs.core.trees import filled, named_arrays
from piefs.data.files import (
    DAMAGE,
    MOST_WEIGHT_BYTES,
    bounded_bytes,
    described,
    load_arrays,
    parse_json,
    write_bytes,
)
from piefs.data.rows import LazyRows
from piefs.errors import CheckpointError, InputError, ModelFileError, TrainingWarning
from piefs.training.batches import Samples
from piefs.training.sharding import ONE
from piefs.training.state import MOST_RATE_CUTS, TrainState

CHECKPOINT_VERSION = 3
DIGEST_ROWS = 1000  # of rows in a file: reading all of them would take as long as a pass
ARRAYS = ("params", "opt_state", "frozen", "best")
PLAIN_FIELDS = [f.name for f in fields(TrainState) if f.name not in ARRAYS]


class Checkpoint:
    """A callback that keeps the newest state of a run in a file, and the one before beside it.

    The folder of `path` is made if need be. A write comes `every_seconds` at most (0: after every
    chunk of steps). With `resume`, the run goes on from the file if it is there.
    """

    def __init__(
        self, path: str | Path, *, every_seconds: float = 10.0, resume: bool = False
    ) -> None:
        self.path = Path(path)
        self.every_seconds = every_seconds
        self.resume = resume
        self.seconds_before = 0.0
        self._run: dict[str, Any] = {}
        self._devices = ONE
        self._started = self._written = time.monotonic()

    def bind(self, settings: dict[str, Any], samples: Samples) -> None:
        """Name the run, so that checkpoints of other runs are refused."""
        self._run = {"settings": settings, "data": data_digest(samples)}
        self._devices = samples.devices
        self._started = self._written = time.monotonic()

    def __call__(self, state: TrainState) -> None:
        """Write the state if the last write is long enough ago."""
        if self._devices.process == 0 and time.monotonic() - self._written >= self.every_seconds:
            arrays = _arrays(state)
            document = {
                "version": CHECKPOINT_VERSION,
                "fingerprint": self._run,
                "seconds": self.seconds,
                "digest": arrays_digest(arrays),
                **{name: getattr(state, name) for name in PLAIN_FIELDS},
            }
            content = safetensors.numpy.save(arrays, metadata={"piefs": json.dumps(document)})
            write_bytes(self.path, content, keep=previous(self.path))
            self._written = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time spent on the run so far, earlier sittings included."""
        return self.seconds_before + time.monotonic() - self._started

    def restore(self, fresh: TrainState) -> TrainState:
        """The state to go on from: the newest sound file's, or the fresh one if there is none.

        Of several processes the first one reads the file and sends it to the others.
        """
        is_first = self._devices.process == 0
        content = self._devices.told_by_first(self._newest(fresh) if is_first else None)
        return fresh if content is None else self._restored(self.path, content, fresh)

    def _newest(self, fresh: TrainState) -> bytes | None:
        """The content of the newest sound file, if there is one."""
        damage = None
        for path in (self.path, previous(self.path)):
            if not (self.resume and path.is_file()):
                continue
            try:
                content = bounded_bytes(path, MOST_WEIGHT_BYTES)
                self._restored(path, content, fresh)
            except CheckpointError as error:
                damage = damage or error
            except DAMAGE as error:
                if isinstance(error, InputError) and not isinstance(error, ModelFileError):
                    raise  # it belongs to another run, which is no damage
                damage = damage or CheckpointError(f"{path} is damaged ({described(error)})")
            else:
                if damage is not None:
                    message = f"{damage.what}; the run goes on from the checkpoint before it"
                    warnings.warn(message, TrainingWarning, stacklevel=3)
                return content
        if damage is not None:
            raise damage
        return None

    def _restored(self, path: Path, content: bytes, fresh: TrainState) -> TrainState:
        """The state in a file, which is checked to be whole and of the same run."""
        header_size = int.from_bytes(content[:8], "little")
        document = parse_json(parse_json(content[8 : 8 + header_size])["__metadata__"]["piefs"])
        if document["version"] != CHECKPOINT_VERSION:
            raise CheckpointError(f"{path} was written by another version of piefs")
        arrays, found = load_arrays(content, path), document["fingerprint"]
        if arrays_digest(arrays) != document["digest"]:
            raise ValueError("its checksum differs")
        if found["data"] != self._run["data"]:
            raise InputError(f"{path} belongs to a run on other data; start over with --force")
        for name, value in json.loads(json.dumps(self._run["settings"])).items():
            other = found["settings"].get(name)
            if value != other:
                raise InputError(
                    f"{path} belongs to a run with {name}={other!r}, not {value!r}; use the same "
                    "settings, or start over with --force"
                )
        state = _rebuilt(fresh, arrays, document)
        self.seconds_before = float(document["seconds"])
        return state


def _arrays(state: TrainState) -> dict[str, np.ndarray]:
    tree = {"params": state.params, "opt_state": state.opt_state, "best": state.best}
    tree["frozen"] = stack(state.frozen) if state.frozen else None
    return {name: np.asarray(array, order="C") for name, array in named_arrays(tree).items()}


def _rebuilt(
    fresh: TrainState, arrays: dict[str, np.ndarray], document: dict[str, Any]
) -> TrainState:
    """A state with the file's values in the shapes of a fresh one."""
    k, (count, sums) = int(document["k"]), document["interval"]
    if any(array.shape[:1] != (k,) for name, array in arrays.items() if name.startswith("frozen")):
        raise ValueError(f"there are not {k} frozen maps")
    if len(document["rate_cuts"]) > MOST_RATE_CUTS:
        raise ValueError("the rate was cut more often than it can be")
    one, has_best = fresh.params.phi, any(name.startswith("best.") for name in arrays)
    frozen = stack([one] * k) if k and is_single(one) else one
    like = {"params": fresh.params, "opt_state": fresh.opt_state}
    like |= {"frozen": frozen if k else None, "best": fresh.params if has_best else None}
    tree = jax.tree.map(jax.numpy.array, filled(like, arrays))
    return TrainState(
        k,
        int(document["step"]),
        tree["params"],
        tree["opt_state"],
        tuple(unstack(tree["frozen"])) if k else (),
        energies=tuple(map(float, document["energies"])),
        log_scale_ranges=tuple((float(a), float(b)) for a, b in document["log_scale_ranges"]),
        steps=tuple(map(int, document["steps"])),
        interval=(int(count), tuple(map(float, sums))),
        history=tuple(map(dict, document["history"])),
        best=tree["best"],
        rate_cuts=tuple(map(int, document["rate_cuts"])),
    )


def previous(path: Path) -> Path:
    """The path of the last checkpoint but one."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def arrays_digest(arrays: dict[str, np.ndarray]) -> str:
    """A checksum over names, shapes and bytes."""
    checksum = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        checksum.update(f"{name}{array.dtype}{array.shape}".encode())
        checksum.update(array.data)
    return checksum.hexdigest()


def data_digest(samples: Samples) -> str:
    """A checksum of the training data; of rows in a file, of some of them, evenly spread."""
    x = samples.x
    if isinstance(x, LazyRows):
        x = x[np.linspace(0, len(x) - 1, min(len(x), DIGEST_ROWS)).astype(int)]
    weights = {"weight": samples.weights, "label_weight": samples.label_weights}
    return arrays_digest({"x": np.asarray(x), "target": samples.targets, **weights})
