"""Files: whole-or-nothing writes and bounded reads.

A write goes to a temporary file beside its target, is flushed to disk and takes the target's name
in one step, so a crash or a full disk leaves the old file as it was. A read is bounded in size, and
whatever goes wrong while decoding becomes one error that names the file.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from piefs.errors import InputError, PiefsError, StorageError

MOST_DOCUMENT_BYTES = 256 * 2**20
FREE_BYTES = 2**30  # any file may unpack to this much
MOST_FOLD = 100  # beyond that, to so many times its own size
MOST_COLUMNS = 1_000_000
LARGEST_INTEGER = 2**64

DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What code written for sound files raises on others."""


# --- writing -----------------------------------------------------------------------------------


def write_with(path: Path, write: Callable[[Path], object], keep: Path | None = None) -> None:
    """Let `write` fill a temporary file that then becomes `path`; the old file becomes `keep`."""
    try:
        _replace(path, write, keep)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written ({error.strerror or error}); make room, or choose another "
            "folder. What was there before is whole"
        ) from error


def _replace(path: Path, write: Callable[[Path], object], keep: Path | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.umask(mask := os.umask(0))  # there is no other way to read it
        temporary.chmod(0o666 & ~mask)
        if keep is not None and path.is_file():
            path.replace(keep)
        temporary.replace(path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Make the new name survive a power cut, if the platform can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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


# --- reading -----------------------------------------------------------------------------------


@contextmanager
def reading(
    path: Path, remedy: str = "write it again", error: type[PiefsError] = InputError
) -> Iterator[None]:
    """Turn any failure inside into an `error` that calls the file damaged; our own errors pass."""
    try:
        yield
    except PiefsError:
        raise
    except DAMAGE as reason:
        raise error(f"{path} is damaged ({described(reason)}); {remedy}") from reason


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """As `reading`, around numpy, pyarrow and zarr: their decoders raise errors of any type."""
    try:
        yield
    except PiefsError:
        raise
    except MemoryError as reason:
        raise InputError(
            f"{path} does not fit into memory; give fewer columns, or smaller groups of rows"
        ) from reason
    except Exception as reason:
        if isinstance(reason, OSError) and reason.errno:  # the disk's fault, not the file's
            raise InputError(f"{path} cannot be read ({reason.strerror})") from reason
        raise InputError(f"{path} is damaged ({described(reason)}); write it again") from reason


def described(error: BaseException) -> str:
    """An error in at most 200 characters, whatever the file has put into its message."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return words if len(words) <= 200 else words[:200] + "…"


def read_json(
    path: Path, remedy: str = "write it again", error: type[PiefsError] = InputError
) -> dict[str, Any]:
    """The object in a JSON file."""
    with reading(path, remedy, error):
        return parse_json(bounded_text(path))


def read_toml(path: Path, remedy: str = "write it again") -> dict[str, Any]:
    """The table in a TOML file."""
    with reading(path, remedy):
        return tomllib.loads(bounded_text(path))


def bounded_text(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES) -> str:
    """The text of a file of at most so many bytes."""
    return bounded_bytes(path, most_bytes).decode("utf-8")


def bounded_bytes(path: Path, most_bytes: int) -> bytes:
    """The bytes of an ordinary file; a device or a pipe might never end."""
    if not path.is_file():
        raise ValueError("no ordinary file")
    if path.stat().st_size > most_bytes:
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
    if len(digits) > 21 or abs(int(digits)) >= LARGEST_INTEGER:
        raise ValueError(f"the whole number {digits[:20]}… does not fit into 64 bits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return value


def require_plausible(
    path: Path, n_bytes: int, remedy: str = "write it without compression"
) -> None:
    """Refuse a file that claims to unpack to far more than it holds, before it is unpacked."""
    if 0 <= n_bytes <= FREE_BYTES:
        return
    if not 0 <= n_bytes <= MOST_FOLD * stored_bytes(path, enough=n_bytes / MOST_FOLD):
        raise InputError(
            f"{path} would unpack to {n_bytes:,} bytes, more than {MOST_FOLD} times its size; if "
            f"that is meant, {remedy}"
        )


def stored_bytes(path: Path, enough: float) -> int:
    """The size of a file, or of the files in a folder, counted until it is `enough`."""
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            total += Path(folder, name).lstat().st_size
            if total >= enough:
                return total
    return total


def require_few_columns(path: Path, n_columns: int) -> None:
    """Refuse a table so wide that its names alone would fill the memory."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"{path} has {n_columns:,} columns, more than {MOST_COLUMNS:,}; is it meant to be "
            "transposed?"
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
