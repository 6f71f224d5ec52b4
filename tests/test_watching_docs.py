"""The code of the pages on watching and choosing runs as written."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_page_on_watching(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    names = run("watching.md", tmp_path, monkeypatch)
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 1 + len(
        names["history"].rows
    )
    assert "training: 1 of 4" in capsys.readouterr().out
    assert len(names["scores"]) > 1


def test_the_page_on_choosing(tmp_path, monkeypatch):
    names = run("choosing.md", tmp_path, monkeypatch)
    assert names["model"].score(names["X"], names["y"]) > 0.6
    assert len(names["tuned"].records) >= 3


def test_the_page_on_watching_names_every_kind_of_warning():
    page = (ROOT / "docs/watching.md").read_text()
    source = (ROOT / "src/piefs/diagnosis.py").read_text()
    kinds = re.findall(r'Finding\(\s*"([a-z-]+)"', source)
    assert len(kinds) == 6
    assert all(f"`{kind}`" in page for kind in kinds)
