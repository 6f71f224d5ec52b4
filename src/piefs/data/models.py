"""The former name of part of `folders`."""

from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.folders import (
    DOCUMENT,
    MOST_WEIGHT_BYTES,
    WEIGHTS,
    library_versions,
    load_arrays,
    read_folder,
    write_folder,
)
from piefs.errors import ModelFileError

FORMAT_VERSION = 2
MOST_BYTES = MOST_WEIGHT_BYTES
__all__ = ["DOCUMENT", "MOST_BYTES", "WEIGHTS", "ModelFileError", "library_versions", "load_arrays"]


def write_model(folder: Path, arrays: dict[str, np.ndarray], document: dict[str, Any]) -> None:
    write_folder(folder, arrays, document, FORMAT_VERSION)


def read_model(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    return read_folder(folder, (FORMAT_VERSION,))
