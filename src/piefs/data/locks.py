"""One writer at a time: a lock that dies with its process, and says whose it is."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from piefs.errors import InputError

try:
    import fcntl
except ImportError:  # not on this platform: processes are then not locked against each other
    fcntl = None


LOCK = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """A folder for one writer, made if need be, and taken away again if it is left empty."""
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise InputError(
            f"cannot write to {folder} ({error.strerror}); choose another --out"
        ) from error
    try:
        with locked(folder / LOCK, folder):
            yield
    finally:
        if not existed:
            with suppress(OSError):  # not empty: then there is something to keep
                folder.rmdir()


@contextmanager
def locked(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock file `path` for as long as `what` is written to.

    The lock is the operating system's, so that of a dead process holds nobody back.
    """
    file = _acquired(path, what)
    try:
        yield
    finally:
        with suppress(OSError):  # an open file may have to stay; it holds nobody back
            path.unlink()  # before it is closed, so that nobody locks a file that goes
        file.close()


def _acquired(path: Path, what: Path) -> IO[str]:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            _lock(file, what)
            if _is_at(file, path):
                file.truncate(0)
                file.write(f"{os.getpid()} on {socket.gethostname()}")
                file.flush()
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its last holder has taken it away in the meantime


def _lock(file: IO[str], what: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read(200).strip()
        named = f"process {holder}" if holder else "another process"
        raise InputError(
            f"{named} is writing to {what}; wait for it, or choose another --out"
        ) from error


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
