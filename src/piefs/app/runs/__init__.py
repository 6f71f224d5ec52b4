"""A run: fit a model on a data set, measure it, and leave everything in one folder."""

from piefs.app.runs.fit import TASKS, described_data, run
from piefs.app.runs.folder import RunFolder

__all__ = ["TASKS", "RunFolder", "described_data", "run"]
