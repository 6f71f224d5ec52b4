"""The former name of part of `folders`."""

from piefs.data.folders import LOCK, held

__all__ = ["LOCK", "held"]
