"""Whole-or-nothing writes and bounded reads."""

import json
import os
from pathlib import Path

import pytest

from faults import full_disk
from piefs.data import files
from piefs.data.files import described, parse_json, read_json, reading
from piefs.errors import DamagedDataError, InputError, StorageError


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.txt"
    files.write_bytes(path, b"old")

    def fail(temporary):
        temporary.write_bytes(b"half of the n")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write_with(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_on_the_way_are_made(tmp_path):
    files.write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"


def test_json_is_strict_even_where_numbers_are_not_finite(tmp_path):
    files.write_json(tmp_path / "f.json", {"a": [float("nan"), float("inf"), 1.5], "b": "φ"})
    assert json.loads((tmp_path / "f.json").read_text()) == {"a": [None, None, 1.5], "b": "φ"}


def test_files_get_the_permissions_of_ordinary_files(tmp_path):
    (tmp_path / "ordinary").write_bytes(b"")
    files.write_bytes(tmp_path / "atomic", b"")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_full_disk_is_a_typed_error_that_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.bin"
    files.write_bytes(path, b"old")
    with full_disk(1000), pytest.raises(StorageError, match=r"file\.bin cannot be written.*whole"):
        files.write_bytes(path, bytes(5000))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_closed_to_us_is_a_typed_error():
    # Root may write to any folder of a disk, and nobody to this one.
    with pytest.raises(StorageError, match="cannot be written"):
        files.write_bytes(Path("/proc/piefs/file"), b"")


def test_content_and_name_are_flushed_before_a_write_is_over(tmp_path, monkeypatch):
    flushed, real = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: flushed.append(os.fstat(handle)) or real(handle)
    )
    path = tmp_path / "file"
    files.write_bytes(path, b"content")
    assert [one.st_ino for one in flushed] == [path.stat().st_ino, tmp_path.stat().st_ino]


def test_what_a_write_replaces_can_be_kept(tmp_path):
    path, kept = tmp_path / "file", tmp_path / "kept"
    for content in (b"1", b"2", b"3"):
        files.write_bytes(path, content, keep=kept)
    assert (path.read_bytes(), kept.read_bytes()) == (b"3", b"2")


# --- reading -----------------------------------------------------------------------------------


def test_a_sound_document_is_read_unchanged(tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"a": [1, -2.5, "φ", null], "b": {"c": 18446744073709551615}}')
    assert read_json(path) == {"a": [1, -2.5, "φ", None], "b": {"c": 2**64 - 1}}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "3", "null", "{", '{"a": NaN}', '{"a": -1e999}', '{"a": 18446744073709551616}'),
        *('{"a": ' + "1" * 100_000 + "}", '{"a": "\\ud800"}', '{"a":' * 100_000, "\x00"),
    ],
)
def test_what_is_no_document_is_an_error_that_names_the_file_and_a_remedy(tmp_path, text):
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"d\.json is damaged \(.*\); fit again"):
        read_json(path, "fit again")


def test_files_that_are_too_large_or_no_files_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "d.json"
    path.write_text('{"a": "' + "x" * 1000 + '"}')
    monkeypatch.setattr(files.bounded_text, "__defaults__", (100,))
    for name in ("d.json", "none.json", "."):
        with pytest.raises(InputError, match="damaged"):
            read_json(tmp_path / name)


def test_an_error_that_says_more_passes(tmp_path):
    with pytest.raises(DamagedDataError, match=r"^said already$"), reading(tmp_path):
        raise DamagedDataError("said already")


def test_messages_stay_short_whatever_a_file_says():
    with pytest.raises(ValueError, match="fit into 64 bits") as caught:
        parse_json('{"a": ' + "7" * 4000 + "}")
    assert len(described(caught.value)) < 120
    assert len(described(ValueError("x" * 10_000))) <= 201
