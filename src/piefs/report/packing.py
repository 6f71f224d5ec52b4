"""Arrays as JSON: bytes in base64, which a browser turns into typed arrays at once."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

TYPES = ("uint8", "int32", "float32")


def pack(values: np.ndarray, kind: str = "float32") -> dict[str, Any]:
    """An array as {type, shape, bytes}, little-endian."""
    values = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    content = base64.b64encode(values.tobytes()).decode()
    return {"type": kind, "shape": list(values.shape), "bytes": content}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """The array that was packed; a ValueError or KeyError where it cannot be right."""
    if packed["type"] not in TYPES:
        raise ValueError(f"unknown type {packed['type']!r}")
    content = base64.b64decode(packed["bytes"], validate=True)
    dtype = np.dtype(packed["type"]).newbyteorder("<")
    return np.frombuffer(content, dtype).reshape(packed["shape"])
