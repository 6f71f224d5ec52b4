"""The former name of part of `files`."""

from piefs.data.files import write_bytes, write_json, write_with

__all__ = ["write_bytes", "write_json", "write_with"]
