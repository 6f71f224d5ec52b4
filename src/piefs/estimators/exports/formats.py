"""Which formats there are, and what their files may be called."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from piefs.data.files import write_bytes
from piefs.errors import InputError
from piefs.estimators.exports.module import module_source
from piefs.estimators.exports.onnx_graph import onnx_bytes
from piefs.estimators.exports.plain import PlainModel


class Format(NamedTuple):
    """The suffix of a format's files, and what they contain."""

    suffix: str
    content: Callable[[PlainModel], bytes]


FORMATS: dict[str, Format] = {
    "onnx": Format(".onnx", onnx_bytes),
    "numpy": Format(".py", lambda model: module_source(model).encode()),
}


def format_of(path: Path) -> str:
    """The format that a file's name asks for."""
    for name, one in FORMATS.items():
        if path.suffix == one.suffix:
            if name == "numpy":
                _check_importable(path)
            return name
    kinds = ", ".join(f"{one.suffix} ({name})" for name, one in FORMATS.items())
    raise InputError(f"cannot export to {path}; its name must end in one of {kinds}")


def export(model: PlainModel, path: Path) -> None:
    """Write a model in the format that the suffix says; whole, or not at all."""
    content = FORMATS[format_of(path)].content(model)
    try:
        write_bytes(path, content)
    except OSError as error:
        raise InputError(f"cannot write to {path} ({error.strerror})") from error


def _check_importable(path: Path) -> None:
    """Refuse a module that could not be imported, or that others would import for another."""
    name = path.stem
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(
            f"{path.name} could not be imported; use letters, digits and underscores alone, "
            "such as churn_model.py"
        )
    if name == "numpy" or name in sys.stdlib_module_names:
        raise InputError(f"{path.name} would hide Python's own module {name}; take another name")
