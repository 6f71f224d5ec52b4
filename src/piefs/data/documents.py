"""The former name of part of `files`."""

from piefs.data.files import (
    DAMAGE,
    bounded_bytes,
    bounded_text,
    decoding,
    described,
    parse_json,
    read_json,
    read_toml,
    reading,
)

__all__ = [
    "DAMAGE",
    "bounded_bytes",
    "bounded_text",
    "decoding",
    "described",
    "parse_json",
    "read_json",
    "read_toml",
    "reading",
]
