"""Settings chosen by a search on validation rows, within a budget."""

from piefs.app.tuning.search import Tuned, tune

__all__ = ["Tuned", "tune"]
