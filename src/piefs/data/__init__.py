"""Tables become arrays: built-in data sets with fixed splits, and rows that stay in their files.

>>> from piefs.data import load
>>> moons = load("two-moons")
>>> moons.train.x.shape, moons.validation.x.shape, moons.test.x.shape
((7000, 2), (1500, 2), (1500, 2))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piefs.data.builtin import BUILTIN, load
    from piefs.data.readers import open_rows
    from piefs.data.splits import Dataset, Split, split_stratified

__all__ = ["BUILTIN", "Dataset", "Split", "load", "open_rows", "split_stratified"]

_HOMES = {
    "BUILTIN": "builtin",
    "Dataset": "splits",
    "Split": "splits",
    "load": "builtin",
    "open_rows": "readers",
    "split_stratified": "splits",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"piefs.data.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
