"""Fitted models as files for other programs: an ONNX graph, or a Python module of numpy alone."""

from piefs.estimators.exports.formats import FORMATS, export, format_of
from piefs.estimators.exports.plain import PlainModel

__all__ = ["FORMATS", "PlainModel", "export", "format_of"]
