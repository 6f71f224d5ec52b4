"""The pages agree with the code: its tree, its names, the Makefile, and the messages they quote."""

import ast
import re
from pathlib import Path

import pytest

from lab.tree import CLOSE, OPEN, tree
from pages import ROOT, commands
from piefs.core import kernel
from piefs.estimators import decisions
from piefs.training import eigen, features

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
SOURCE = ROOT / "src/piefs"


def test_the_tree_is_that_of_the_code():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    written = text.split(OPEN)[1].split(CLOSE)[0]
    assert written.splitlines() == tree().splitlines(), "python -m lab.tree brings it up to date"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [c.split()[1] for c in commands(CONTRIBUTING) if c.startswith("make ")]
    assert len(targets) > 5
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_the_architecture_page_names_modules_that_exist():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = "core|data|training|estimators|operators|report|app"
    modules = set(re.findall(rf"`((?:{rooms})/\w+)`", page))
    missing = [m for m in modules if not list(SOURCE.glob(f"{m}.py"))]
    assert len(modules) > 8
    assert missing == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_links_and_pictures_of_a_page_exist(page):
    made = ("beyond.md", "gallery/", "commands.md")  # when the site is built
    for path in re.findall(r"\]\(([^)#:]+)[)#]", page.read_text(encoding="utf-8")):
        assert path.startswith(made) or (page.parent / path).is_file(), path


def test_the_page_on_the_closed_form_has_the_numbers_of_the_code():
    page = (ROOT / "docs/closed_form.md").read_text(encoding="utf-8")
    counts = (
        *(eigen.LANDMARKS, eigen.MORE_LANDMARKS, eigen.ROWS_IN_DOUBLE, eigen.ROWS_FOR_MORE),
        *(eigen.METRIC_ROWS, eigen.MORE_METRIC_ROWS, features.RIDGE_ROWS, features.READOUT_ROWS),
        *(features.LEFT_OUT_ROWS, kernel.EQUAL_ROWS, kernel.STEPS, len(kernel.RIDGES)),
        *(decisions.MANY_FEATURES, decisions.MANY_ROWS),
    )
    assert [n for n in counts if not re.search(rf"\b{n:,}\b", page)] == []
    assert f"{kernel.PRIOR}\\,\\mathrm{{Var}}" in page
    assert [name for name in decisions.OF_DESCENT if f"`{name}`" not in page] == []


# --- NOTATION.md: each name stands in the module that the table gives -------------------------

NOTATION = (ROOT / "NOTATION.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in NOTATION.splitlines() if line.startswith("| ")]
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


# --- errors and warnings that the docs quote --------------------------------------------------

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
    return [text for path in SOURCE.rglob("*.py") for text in _texts(path)]


@pytest.mark.parametrize("message", ERRORS)
def test_error_of_the_page_exists(message, texts):
    pattern = ".*".join(map(re.escape, message.split("…")))
    assert any(re.search(pattern, text, flags=re.DOTALL) for text in texts)


def test_the_page_quotes_errors():
    assert len(ERRORS) >= 10


def test_the_page_on_watching_names_every_kind_of_warning():
    page = (ROOT / "docs/watching.md").read_text(encoding="utf-8")
    source = (SOURCE / "training/diagnosis.py").read_text(encoding="utf-8")
    kinds = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source))
    assert len(kinds) == 7
    assert all(f"`{kind}`" in page for kind in kinds)
