"""How much a file may unpack to: compression is no excuse for filling the memory."""

import os
from pathlib import Path

from piefs.errors import InputError

FREE_BYTES = 2**30  # what any file may unpack to
MOST_FOLD = 100  # beyond that, how many times its own size
MOST_COLUMNS = 1_000_000


def most_bytes(n_stored: float) -> float:
    """What so many bytes of a file may unpack to."""
    return max(FREE_BYTES, MOST_FOLD * n_stored)


def require_plausible(
    path: Path,
    n_bytes: int,
    remedy: str = "write it without compression",
    n_stored: int | None = None,
) -> None:
    """Refuse a file that claims to unpack to far more than it holds, before it is unpacked."""
    if 0 <= n_bytes <= FREE_BYTES:
        return
    if n_stored is None:
        n_stored = stored_bytes(path, enough=n_bytes / MOST_FOLD)
    if not 0 <= n_bytes <= most_bytes(n_stored):
        raise InputError(
            f"{path} would unpack to {n_bytes:,} bytes, more than {MOST_FOLD} times its size; if "
            f"that is meant, {remedy}"
        )


def stored_bytes(path: Path, enough: float) -> int:
    """The size of a file, or of the files in a folder, which may be many: until it is enough."""
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
    """Refuse a table that is so wide that its names alone would fill the memory."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"{path} has {n_columns:,} columns, more than {MOST_COLUMNS:,}; is it meant to be "
            "transposed?"
        )
