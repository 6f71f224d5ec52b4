"""Atomic writes."""

import json

import pytest

from piefs.io import atomic


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.txt"
    atomic.write_bytes(path, b"old")

    def fail(temporary):
        temporary.write_bytes(b"half of the n")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        atomic.write_with(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_on_the_way_are_made(tmp_path):
    atomic.write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"


def test_json_is_strict_even_where_numbers_are_not_finite(tmp_path):
    atomic.write_json(tmp_path / "f.json", {"a": [float("nan"), float("inf"), 1.5], "b": "φ"})
    assert json.loads((tmp_path / "f.json").read_text()) == {"a": [None, None, 1.5], "b": "φ"}


def test_files_get_the_permissions_of_ordinary_files(tmp_path):
    (tmp_path / "ordinary").write_bytes(b"")
    atomic.write_bytes(tmp_path / "atomic", b"")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
