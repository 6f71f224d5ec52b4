"""Model folders: `weights.safetensors` for arrays, `model.json` for everything else.

The JSON document carries a format version and the digest of the weights it belongs to, so that a
truncated, mixed-up or foreign folder is noticed before anything is built from it.
"""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from piefs.data import atomic
from piefs.data.documents import bounded_bytes, described, read_json, reading
from piefs.errors import ModelFileError

FORMAT_VERSION = 2
MOST_BYTES = 16 * 2**30
WEIGHTS, DOCUMENT = "weights.safetensors", "model.json"
LIBRARIES = ("jax", "equinox", "optax", "numpy", "scipy", "scikit-learn")


def library_versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {name: version(name) for name in LIBRARIES}
    return {"piefs": version("piefs-learn")} | found


def write_model(folder: Path, arrays: dict[str, np.ndarray], document: dict[str, Any]) -> None:
    """Write a model folder; the document is written last, and names the weights it goes with."""
    content = safetensors.numpy.save({k: np.asarray(v, order="C") for k, v in arrays.items()})
    header = {
        "format_version": FORMAT_VERSION,
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        "versions": library_versions(),
    }
    atomic.write_bytes(folder / WEIGHTS, content)
    atomic.write_json(folder / DOCUMENT, header | document)


def read_model(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the document of a model folder, checked against each other."""
    if not (folder / DOCUMENT).is_file():
        raise ModelFileError(f"{folder} is not a model folder: it has no {DOCUMENT}")
    document = read_json(folder / DOCUMENT, error=ModelFileError)
    found, digest = document.get("format_version"), document.get("weights_sha256")
    if found != FORMAT_VERSION:
        raise ModelFileError(
            f"{folder} has model format {found!r}, this version of piefs reads {FORMAT_VERSION}; "
            f"it was written by piefs {_written_by(document)}"
        )
    try:
        content = bounded_bytes(folder / WEIGHTS, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{folder / WEIGHTS} cannot be read ({described(error)})") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise ModelFileError(f"{folder / WEIGHTS} is damaged or belongs to another model.json")
    return load_arrays(content, folder / WEIGHTS), document


def load_arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, none of them outside of it."""
    with reading(path, error=ModelFileError):
        try:
            return safetensors.numpy.load(content)
        except SafetensorError as error:
            raise ValueError(f"no safetensors file: {error}") from error


def _written_by(document: dict[str, Any]) -> str:
    versions = document.get("versions")
    return str(versions.get("piefs", "?"))[:40] if isinstance(versions, dict) else "?"
