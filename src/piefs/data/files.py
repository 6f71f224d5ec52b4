"""Files and folders: whole-or-nothing writes, bounded reads, locks, models on disk.

A write goes to a temporary file that takes the target's name once it is flushed, so a crash or a
full disk leaves the old file as it was. A read is bounded in size, and any failure to decode
becomes one error that names the file. A model is a folder of `weights.safetensors` and
`model.json`, which has a format version and the digest of its weights.
"""

import hashlib
import json
import math
import os
import secrets
import socket
import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from piefs.errors import InputError, ModelFileError, PiefsError, StorageError

WEIGHTS, DOCUMENT, LOCK = "weights.safetensors", "model.json", ".lock"
LIBRARIES = ("jax", "equinox", "optax", "numpy", "scipy", "scikit-learn")
MOST_DOCUMENT_BYTES = 256 * 2**20
MOST_WEIGHT_BYTES = 16 * 2**30
FREE_BYTES = 2**30  # any file may unpack to this much
MOST_FOLD = 100  # beyond that, to so many times its own size

DAMAGE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError),
    *(OSError, RecursionError, TypeError, ValueError),
)
"""What code written for sound files raises on others."""


def write_with(path: Path, write: Callable[[Path], object], keep: Path | None = None) -> None:
    """Let `write` fill a temporary file that then becomes `path`; the old file becomes `keep`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if keep is not None and path.is_file():
            path.replace(keep)
        temporary.replace(path)
        with suppress(OSError):  # not every platform can flush a folder
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written ({error.strerror or error}); make room, or choose another "
            "folder. What was there before is whole"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes, keep: Path | None = None) -> None:
    """`content` as the file `path`; the old file becomes `keep`."""
    write_with(path, lambda temporary: temporary.write_bytes(content), keep)


def write_json(path: Path, document: Any, indent: int | None = 2) -> None:
    """A JSON file with keys in their given order; NaN and infinity become null."""
    text = json.dumps(_nullified(document), indent=indent, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def _nullified(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nullified(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nullified(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def reading(
    path: Path, remedy: str = "write it again", error: type[PiefsError] = InputError
) -> Iterator[None]:
    """Turn any failure inside into an `error` that names the file; our own errors pass."""
    try:
        yield
    except PiefsError:
        raise
    except MemoryError as reason:
        raise error(f"{path} does not fit into memory; give fewer rows or columns") from reason
    except Exception as reason:  # decoders such as zarr's raise any type
        if isinstance(reason, OSError) and reason.errno:  # the disk's fault, not the file's
            raise error(f"{path} cannot be read ({reason.strerror})") from reason
        raise error(f"{path} is damaged ({described(reason)}); {remedy}") from reason


def described(error: BaseException) -> str:
    """An error in at most 200 characters, whatever the file has put into its message."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return words if len(words) <= 200 else words[:200] + "…"


def read_document(
    path: Path, remedy: str = "write it again", error: type[PiefsError] = InputError
) -> dict[str, Any]:
    """The object in a JSON file, or the table in a TOML file."""
    with reading(path, remedy, error):
        text = bounded_text(path)
        return parse_json(text) if path.suffix == ".json" else tomllib.loads(text)


def bounded_text(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES) -> str:
    """The text of a file of at most so many bytes."""
    return bounded_bytes(path, most_bytes).decode("utf-8")


def bounded_bytes(path: Path, most_bytes: int) -> bytes:
    """The bytes of an ordinary file; a device or a pipe might never end."""
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError("no ordinary file")
    if size > most_bytes:
        raise ValueError(f"more than {most_bytes:,} bytes")
    return path.read_bytes()


def parse_json(text: str | bytes) -> dict[str, Any]:
    """The object in a text, all its numbers finite and its integers within 64 bits."""
    found = json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    if not isinstance(found, dict):
        raise ValueError(f"it holds {type(found).__name__}, not names and values")
    json.dumps(found, ensure_ascii=False).encode()  # lone surrogates are an error here
    return found


def _integer(digits: str) -> int:
    if abs(value := int(digits)) >= 2**64:
        raise ValueError(f"the whole number {digits[:20]}… does not fit into 64 bits")
    return value


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return value


def require_plausible(path: Path, n_bytes: int) -> None:
    """Refuse a file or folder that claims to unpack to far more than it holds."""
    if n_bytes <= FREE_BYTES:
        return
    stored = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        stored += file.lstat().st_size
        if n_bytes <= MOST_FOLD * stored:
            return
    raise InputError(
        f"{path} would unpack to {n_bytes:,} bytes, more than {MOST_FOLD} times its size; if that "
        "is meant, write it without compression and without dictionaries"
    )


def optional(name: str, what: str, extra: str = "app") -> Any:
    """A module that a plain install does not bring; without it, an error says what to install."""
    package = name.partition(".")[0]
    try:
        import_module(package)
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"{what} needs the package {package}: pip install 'piefs-learn[{extra}]'"
        ) from error


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder for one writer; it is made if need be, and removed if it stays empty."""
    filelock = optional("filelock", f"a lock on {folder}")
    file, existed = folder / LOCK, folder.exists()
    lock = filelock.FileLock(file, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout as error:
        holder = "another process"
        with suppress(OSError):
            holder = f"process {file.read_text(errors='replace')[:200].strip()}"
        raise InputError(
            f"{holder} is writing to {folder}; wait for it, or choose another --out"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot write to {folder} ({error.strerror}); choose another --out"
        ) from error
    try:
        with suppress(OSError):  # some systems let nobody write to a locked file
            file.write_text(f"{os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        with suppress(OSError):  # an open file cannot be removed everywhere; it blocks nobody
            file.unlink()  # before the release, so that nobody locks a removed file
        lock.release()
        if not existed:
            with suppress(OSError):  # not empty
                folder.rmdir()


def library_versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"piefs": version("piefs-learn")} | {name: version(name) for name in LIBRARIES}


def write_folder(
    folder: Path, arrays: dict[str, np.ndarray], document: dict[str, Any], format_version: int
) -> None:
    """`weights.safetensors` and `model.json`; a crash leaves the old model or the new one.

    The document is the switch. New weights wait under a name of their own until it names them by
    their digest, and take the place of the old ones after it; `read_folder` looks for both.
    """
    import safetensors.numpy

    content = safetensors.numpy.save({k: np.asarray(v, order="C") for k, v in arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    header = {
        "format_version": format_version,
        "weights_sha256": digest,
        "versions": library_versions(),
    }
    waiting = folder / waiting_weights(digest)
    write_bytes(waiting, content)
    write_json(folder / DOCUMENT, header | document)
    with suppress(OSError):  # the model is whole already
        waiting.replace(folder / WEIGHTS)
        for stray in folder.glob(waiting_weights("*")):  # of saves that were cut off
            stray.unlink()


def waiting_weights(digest: str) -> str:
    """The name of weights that a document is yet to name, or has just named."""
    return f"weights.{digest[:16]}.safetensors"


def read_folder(
    folder: Path, formats: Collection[int]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the document of a folder in one of the `formats`, checked by the digest."""
    if not (folder / DOCUMENT).is_file():
        raise ModelFileError(f"{folder} is not a model folder: it has no {DOCUMENT}")
    document = read_document(folder / DOCUMENT, error=ModelFileError)
    found = document.get("format_version")
    if type(found) is not int or found not in formats:
        readable = " and ".join(map(str, formats))
        raise ModelFileError(
            f"{folder} has model format {found!r}, this version of piefs reads {readable}"
        )
    digest, weights = str(document.get("weights_sha256")), folder / WEIGHTS
    waiting = weights.with_name(waiting_weights(Path(digest).name))
    for path in (weights, waiting, weights):  # which may be moved meanwhile
        if path == weights or path.is_file():
            with reading(path, error=ModelFileError):
                content = bounded_bytes(path, MOST_WEIGHT_BYTES)
            if hashlib.sha256(content).hexdigest() == digest:
                return load_arrays(content, path), document
    raise ModelFileError(f"{weights} is damaged or belongs to another {DOCUMENT}")


def load_arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file."""
    import safetensors.numpy

    with reading(path, error=ModelFileError):
        return safetensors.numpy.load(content)
