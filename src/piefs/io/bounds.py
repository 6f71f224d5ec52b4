"""How much a file may unpack to: compression is no excuse for filling the memory."""

from pathlib import Path

from piefs.errors import InputError

FREE_BYTES = 2**30  # what any file may unpack to
MOST_FOLD = 100  # beyond that, how many times its own size
MOST_COLUMNS = 1_000_000


def require_plausible(path: Path, n_bytes: int) -> None:
    """Refuse a file that claims to unpack to far more than it holds, before it is unpacked."""
    size = path.stat().st_size
    if not 0 <= n_bytes <= max(FREE_BYTES, MOST_FOLD * size):
        raise InputError(
            f"{path} would unpack to {n_bytes:,} bytes, more than {MOST_FOLD} times its size; if "
            "that is meant, write it without compression"
        )


def require_few_columns(path: Path, n_columns: int) -> None:
    """Refuse a table that is so wide that its names alone would fill the memory."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"{path} has {n_columns:,} columns, more than {MOST_COLUMNS:,}; is it meant to be "
            "transposed?"
        )
