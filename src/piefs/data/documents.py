"""Files that a stranger may have written: JSON with bounds, and damage as one typed error.

A document is bounded before it is parsed, holds no number that is not finite or does not fit into
64 bits, and nests no deeper than Python's parser allows. What was made of it and turns out not to
fit together is an error that names the file.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from piefs.errors import InputError, PiefsError

MOST_BYTES = 256 * 2**20
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
"""What code that was written for sound files raises when it meets others."""


@contextmanager
def reading(
    path: Path, remedy: str = "write it anew", error: type[PiefsError] = InputError
) -> Iterator[None]:
    """Whatever goes wrong inside is said to be damage of the file; errors that say more pass."""
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
        if isinstance(reason, OSError) and reason.errno:  # the disk's, not the file's
            raise InputError(f"{path} cannot be read ({reason.strerror})") from reason
        raise InputError(f"{path} is damaged ({described(reason)}); write it anew") from reason


def described(error: BaseException) -> str:
    """An error in a few words, whatever a file has put into its message."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return words if len(words) <= 200 else words[:200] + "…"


def read_json(
    path: Path, remedy: str = "write it anew", error: type[PiefsError] = InputError
) -> dict[str, Any]:
    """The object that a JSON file holds."""
    with reading(path, remedy, error):
        return parse_json(bounded_text(path))


def read_toml(path: Path, remedy: str = "write it anew") -> dict[str, Any]:
    """The table that a TOML file holds."""
    with reading(path, remedy):
        return tomllib.loads(bounded_text(path))


def bounded_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file that is not too large to be what it should be."""
    return bounded_bytes(path, most_bytes).decode("utf-8")


def bounded_bytes(path: Path, most_bytes: int) -> bytes:
    """The bytes of an ordinary file; a device or a pipe might never end."""
    if not path.is_file():
        raise ValueError("no ordinary file")
    if path.stat().st_size > most_bytes:
        raise ValueError(f"more than {most_bytes:,} bytes")
    return path.read_bytes()


def parse_json(text: str | bytes) -> dict[str, Any]:
    """The object in a text; a ValueError or RecursionError where there is none to be trusted."""
    found = json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    if not isinstance(found, dict):
        raise ValueError(f"it holds {type(found).__name__}, not names and values")
    json.dumps(found, ensure_ascii=False).encode()  # halves of characters are an error here
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
