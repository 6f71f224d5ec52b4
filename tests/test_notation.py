"""NOTATION.md agrees with the code: each name stands in the module that the table gives."""

import re

import pytest

from pages import ROOT

PAGE = (ROOT / "NOTATION.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src/piefs"
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
PLACED = [row for row in ROWS if len(row) == 5 and row[4].startswith("`")]
NAMED = [row for row in ROWS if len(row) == 3 and "`" in row[1]]


def text_of(module):
    path = SOURCE / module
    alone = path.with_suffix(".py")
    files = [alone] if alone.is_file() else path.rglob("*.py")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def names(cell):
    return [name.split(".")[-1] for name in re.findall(r"`([A-Za-z_.]+)`", cell)]


@pytest.mark.parametrize("row", PLACED, ids=lambda row: row[2])
def test_name_is_in_its_module(row):
    source = text_of(row[4].strip("`"))
    assert [name for name in names(row[2]) if not re.search(rf"\b{name}\b", source)] == []


def test_other_names_are_in_the_code():
    source = text_of(".")
    missing = [n for row in NAMED for n in names(row[1]) if not re.search(rf"\b{n}\b", source)]
    assert missing == []
    assert len(PLACED) > 15
    assert len(NAMED) > 15
