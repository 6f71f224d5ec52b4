"""Folders: one writer at a time, and models as arrays with a JSON document.

`weights.safetensors` holds the arrays and `model.json` everything else. The document carries a
format version and the digest of its weights, so that a truncated, mixed-up or foreign folder is
noticed before anything is built from it.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.files import (
    bounded_bytes,
    described,
    optional,
    read_json,
    reading,
    write_bytes,
    write_json,
)
from piefs.errors import InputError, ModelFileError

WEIGHTS, DOCUMENT = "weights.safetensors", "model.json"
LOCK = ".lock"
LIBRARIES = ("jax", "equinox", "optax", "numpy", "scipy", "scikit-learn")
MOST_WEIGHT_BYTES = 16 * 2**30


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder for one writer; it is made if need be, and removed if it stays empty.

    The operating system frees the lock of a dead process. The file names its holder.
    """
    filelock = optional("filelock", f"a lock on {folder}")
    lock, existed = filelock.FileLock(folder / LOCK, timeout=0), folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout as error:
        raise InputError(
            f"{_holder(folder / LOCK)} is writing to {folder}; wait for it, or choose another --out"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot write to {folder} ({error.strerror}); choose another --out"
        ) from error
    try:
        with suppress(OSError):  # some systems let nobody write to a locked file
            (folder / LOCK).write_text(f"{os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        with suppress(OSError):  # an open file cannot be removed everywhere; it blocks nobody
            (folder / LOCK).unlink()  # before the release, so that nobody locks a removed file
        lock.release()
        if not existed:
            with suppress(OSError):  # not empty
                folder.rmdir()


def _holder(path: Path) -> str:
    with suppress(OSError):
        if words := path.read_text(errors="replace")[:200].strip():
            return f"process {words}"
    return "another process"


def library_versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"piefs": version("piefs-learn")} | {name: version(name) for name in LIBRARIES}


def write_folder(
    folder: Path, arrays: dict[str, np.ndarray], document: dict[str, Any], format_version: int
) -> None:
    """`weights.safetensors` and `model.json`, which is written last and has the weights' digest."""
    import safetensors.numpy

    content = safetensors.numpy.save({k: np.asarray(v, order="C") for k, v in arrays.items()})
    header = {
        "format_version": format_version,
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        "versions": library_versions(),
    }
    write_bytes(folder / WEIGHTS, content)
    write_json(folder / DOCUMENT, header | document)


def read_folder(
    folder: Path, formats: Collection[int]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the document of a folder in one of the `formats`, checked by the digest."""
    if not (folder / DOCUMENT).is_file():
        raise ModelFileError(f"{folder} is not a model folder: it has no {DOCUMENT}")
    document = read_json(folder / DOCUMENT, error=ModelFileError)
    found, digest = document.get("format_version"), document.get("weights_sha256")
    if type(found) is not int or found not in formats:
        versions = document.get("versions")
        writer = str(versions.get("piefs", "?"))[:40] if isinstance(versions, dict) else "?"
        raise ModelFileError(
            f"{folder} has model format {found!r}, this version of piefs reads "
            f"{' and '.join(map(str, formats))}; it was written by piefs {writer}"
        )
    try:
        content = bounded_bytes(folder / WEIGHTS, MOST_WEIGHT_BYTES)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{folder / WEIGHTS} cannot be read ({described(error)})") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise ModelFileError(f"{folder / WEIGHTS} is damaged or belongs to another {DOCUMENT}")
    return load_arrays(content, folder / WEIGHTS), document


def load_arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file."""
    import safetensors.numpy

    with reading(path, error=ModelFileError):
        try:
            return safetensors.numpy.load(content)
        except safetensors.SafetensorError as error:
            raise ValueError(f"no safetensors file: {error}") from error
