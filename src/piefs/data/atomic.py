"""Writes that are either whole or not there.

Content goes to a temporary file beside its target, is flushed to disk, and takes the target's name
in one step; then the folder is flushed too. A crash, or a full disk, leaves the old file as it was.
"""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from piefs.errors import StorageError


def write_with(path: Path, write: Callable[[Path], object], keep: Path | None = None) -> None:
    """Let `write` fill a temporary file that then becomes `path`; what was there becomes `keep`."""
    try:
        _write_with(path, write, keep)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written ({error.strerror or error}); make room, or choose another "
            "folder. What was there before is whole"
        ) from error


def _write_with(path: Path, write: Callable[[Path], object], keep: Path | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        if keep is not None and path.is_file():
            path.replace(keep)
        temporary.replace(path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Make names last through a power cut, where the platform can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: Path, content: bytes, keep: Path | None = None) -> None:
    """`content` as the file `path`; what was there becomes `keep`."""
    write_with(path, lambda temporary: temporary.write_bytes(content), keep)


def write_json(path: Path, document: Any, indent: int | None = 2) -> None:
    """A JSON file, indented, keys in their given order. NaN and infinity become null."""
    text = json.dumps(_finite(document), indent=indent, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not (abs(value) < float("inf")):
        return None
    return value
