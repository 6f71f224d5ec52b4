"""Errors and warnings that the docs quote are those of the code."""

import ast
import re
from pathlib import Path

import pytest

from pages import ROOT

MESSAGES = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
ERRORS = re.findall(r"^\| `([^`]+)` \|", MESSAGES.split("## Results")[0], flags=re.MULTILINE)


def _texts(path: Path):
    """Strings of a module, implicit concatenation joined; "…" stands for what is filled in."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def texts():
    return [text for path in (ROOT / "src/piefs").rglob("*.py") for text in _texts(path)]


@pytest.mark.parametrize("message", ERRORS)
def test_error_of_the_page_exists(message, texts):
    pattern = ".*".join(map(re.escape, message.split("…")))
    assert any(re.search(pattern, text, flags=re.DOTALL) for text in texts)


def test_the_page_quotes_errors():
    assert len(ERRORS) >= 10


def test_the_page_on_watching_names_every_kind_of_warning():
    page = (ROOT / "docs/watching.md").read_text(encoding="utf-8")
    source = (ROOT / "src/piefs/training/diagnosis.py").read_text(encoding="utf-8")
    kinds = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source))
    assert len(kinds) == 7
    assert all(f"`{kind}`" in page for kind in kinds)
