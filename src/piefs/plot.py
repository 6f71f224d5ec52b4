"""Figures as functions, the public names: see `piefs.report.plot`."""

from piefs.report.plot import *  # noqa: F403
from piefs.report.plot import __all__ as __all__
