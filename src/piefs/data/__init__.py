"""Data sets with fixed splits: `load("two-moons")` and its kin.

>>> from piefs.data import load
>>> moons = load("two-moons")
>>> moons.train.x.shape, moons.validation.x.shape, moons.test.x.shape
((7000, 2), (1500, 2), (1500, 2))
"""

from piefs.data.builtin import BUILTIN, load
from piefs.data.splits import Dataset, Split, split_stratified

__all__ = ["BUILTIN", "Dataset", "Split", "load", "split_stratified"]
