"""Tables become arrays: built-in data sets with fixed splits, and rows that stay in their files.

>>> from piefs.data import load
>>> moons = load("two-moons")
>>> moons.train.x.shape, moons.validation.x.shape, moons.test.x.shape
((7000, 2), (1500, 2), (1500, 2))
"""

from piefs.data.datasets import BUILTIN, Dataset, Split, load, split_stratified
from piefs.data.streamed import open_rows

__all__ = ["BUILTIN", "Dataset", "Split", "load", "open_rows", "split_stratified"]
