"""CONTRIBUTING.md and the architecture page agree with the code and the Makefile."""

import re

from lab.tree import CLOSE, OPEN, tree
from pages import ROOT, commands

PAGE = ROOT / "CONTRIBUTING.md"


def test_the_tree_is_that_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    written = text.split(OPEN)[1].split(CLOSE)[0]
    assert written.splitlines() == tree().splitlines(), "python -m lab.tree brings it up to date"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [c.split()[1] for c in commands(PAGE) if c.startswith("make ")]
    assert len(targets) > 5
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_the_architecture_page_names_modules_that_exist():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = "core|data|training|estimators|operators|report|app"
    modules = set(re.findall(rf"`((?:{rooms})/\w+)`", page))
    missing = [m for m in modules if not list((ROOT / "src/piefs").glob(f"{m}.py"))]
    assert len(modules) > 8
    assert missing == []
