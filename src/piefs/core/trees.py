"""Trees of arrays as named arrays and a document, and back: what files and pickles hold.

A tree is made of dataclasses, named tuples, tuples, lists and dicts; arrays are its leaves. Their
names are their paths, e.g. `maps.net.weights.0`. `structure_of` says in plain values of what kinds
a tree is made, its static fields included, so that `tree_of` can build it again from its arrays.
Only kinds named in `KINDS` are ever built.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from piefs.errors import ModelFileError

KINDS = {
    "Model": "model",
    "Scaling": "model",
    "Readout": "model",
    "ScalarMap": "maps",
    "MLP": "networks",
    "ClosedForm": "agop",
    "KernelMaps": "kernel",
    **dict.fromkeys(("Off", "Diag", "SharedDiag"), "metric"),
    **dict.fromkeys(("RotatedDiag", "SharedRotation", "Composed"), "metric"),
    **dict.fromkeys(("Trotter", "Chain", "Butterfly", "Cayley"), "rotations"),
}
"""What a document may name, and the module of `piefs.core` it lives in."""

MISMATCH = "the weights do not fit model.json"


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """A tree's arrays by their paths."""
    return {path: np.asarray(leaf) for path, leaf in _leaves(tree)}


def structure_of(tree: Any) -> Any:
    """Kinds, static fields, and the shape and type of each array, in plain values."""
    if tree is None:
        return None
    if _is_sequence(tree):
        return [structure_of(one) for one in tree]
    children = _children(tree)
    if children is None:
        return {"dtype": str(tree.dtype), "shape": list(tree.shape)}
    kind = type(tree).__name__
    if kind not in KINDS or _class_of(kind) is not type(tree):
        raise ModelFileError(f"an object of the class {kind} cannot be written to a file")
    static = {name: _plain(getattr(tree, name)) for name in _names(type(tree), static=True)}
    return {"kind": kind} | static | {name: structure_of(child) for name, child in children}


def tree_of(structure: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of a structure with the given arrays, which must be those it names and no others."""
    largest = max((max(array.shape, default=0) for array in arrays.values()), default=0)
    return filled(_of_shapes(structure, largest), arrays)


def filled(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A tree shaped as `like`, of arrays or of their shapes, with the given arrays for leaves."""
    expected = dict(_leaves(like))
    if differing := sorted(set(expected) ^ set(arrays)):
        raise ModelFileError(f"{MISMATCH}: {', '.join(differing[:3])}")
    for name, leaf in expected.items():
        leaf = leaf if _is_shape(leaf) else np.asarray(leaf)
        dtype, shape, array = str(leaf.dtype), list(leaf.shape), arrays[name]
        if (str(array.dtype), list(array.shape)) != (dtype, shape):
            says = f"{name} is {array.dtype}{list(array.shape)}, not {dtype}{shape}"
            raise ModelFileError(f"{MISMATCH}: {says}")
    return _filled(like, arrays)


def in_precision(tree: Any, dtype: Any) -> Any:
    """The tree with its arrays on the host, all of one type: they pickle and copy as they are."""
    return _filled(tree, {name: a.astype(dtype) for name, a in named_arrays(tree).items()})


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    children = _children(tree)
    if children is not None:
        for name, child in children:
            yield from _leaves(child, _joined(path, name))
    elif tree is not None:
        yield path, tree


def _filled(like: Any, arrays: dict[str, np.ndarray], path: str = "") -> Any:
    children = _children(like)
    if children is None:
        return None if like is None else arrays[path]
    parts = {name: _filled(child, arrays, _joined(path, name)) for name, child in children}
    if _is_sequence(like):
        return type(like)(parts.values())
    if isinstance(like, dict | tuple):
        return type(like)(**parts)
    tree = copy.copy(like)
    for name, part in parts.items():
        object.__setattr__(tree, name, part)
    return tree


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _children(tree: Any) -> Iterable[tuple[str, Any]] | None:
    """What a tree is made of, by name; None if it is a leaf."""
    if isinstance(tree, dict):
        return tree.items()
    if _is_sequence(tree):
        return ((str(i), child) for i, child in enumerate(tree))
    if isinstance(tree, tuple) or (dataclasses.is_dataclass(tree) and not _is_shape(tree)):
        return ((name, getattr(tree, name)) for name in _names(type(tree)))
    return None


def _is_sequence(tree: Any) -> bool:
    return isinstance(tree, tuple | list) and not hasattr(tree, "_fields")


def _is_shape(tree: Any) -> bool:
    return hasattr(tree, "shape") and hasattr(tree, "dtype")


def _names(kind: Any, *, static: bool = False) -> list[str]:
    """The names of a named tuple's or a dataclass's fields, of the static ones or of the others."""
    if hasattr(kind, "_fields"):
        return [] if static else list(kind._fields)
    return [f.name for f in dataclasses.fields(kind) if f.metadata.get("static", False) == static]


def _plain(value: Any) -> Any:
    """A static field's value: a plain one, or an object of static fields alone."""
    return value if isinstance(value, str | int | float | None) else structure_of(value)


def _class_of(kind: str) -> Any:
    return getattr(import_module(f"piefs.core.{KINDS[kind]}"), kind)


def _of_shapes(structure: Any, largest: int) -> Any:
    """A structure's tree, with a type and a shape in place of each array."""
    if structure is None:
        return None
    if isinstance(structure, list):
        return tuple(_of_shapes(one, largest) for one in structure)
    if "kind" not in structure:
        return SimpleNamespace(dtype=structure["dtype"], shape=structure["shape"])
    return _object(structure, largest)


def _object(structure: dict[str, Any], largest: int) -> Any:
    if structure["kind"] not in KINDS:
        raise ModelFileError(f"unknown kind {structure['kind']!r} in model.json")
    kind = _class_of(structure["kind"])
    static = {name: _static(structure[name], largest) for name in _names(kind, static=True)}
    fields = getattr(kind, "__dataclass_fields__", {})  # a model of earlier versions may lack some
    parts = {name: None for name, f in fields.items() if f.default is None} | structure
    return kind(**static, **{name: _of_shapes(parts[name], largest) for name in _names(kind)})


def _static(value: Any, largest: int) -> Any:
    if isinstance(value, dict):
        return _object(value, largest)
    if isinstance(value, int) and abs(value) > largest:  # how often parts of an array are repeated
        raise ModelFileError(f"{MISMATCH}: {value} is more than any array's length")
    return value
