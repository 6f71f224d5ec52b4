"""JSON of strangers."""

import pytest

from piefs.data.documents import described, parse_json, read_json, reading
from piefs.errors import DamagedDataError, InputError


def test_a_sound_document_comes_as_it_is(tmp_path):
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
    from piefs.data import documents

    path = tmp_path / "d.json"
    path.write_text('{"a": "' + "x" * 1000 + '"}')
    monkeypatch.setattr(documents.bounded_text, "__defaults__", (100,))
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
