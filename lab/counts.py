"""Sizes of the package, before and after, for docs/architecture.md: `python -m lab.counts`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from lab.import_graph import ROOT, read_house, unpacked

BEFORE = "463a7e5"
PAGE = ROOT / "docs/architecture.md"
OPEN, CLOSE = "<!-- counts -->\n", "<!-- /counts -->"
FROM_WITHIN = """
import inspect
from lab.walk import walk
from piefs import PIEFSClassifier
fit, predict = walk()
print(len(inspect.signature(PIEFSClassifier).parameters), len(fit), len(predict))
"""


def counts(root: Path) -> dict[str, int]:
    """What the page states of the package under `root`, by name."""
    house = read_house(root)
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    keywords, fit, predict = _from_within(root)
    return {
        "modules": len(house.lines),
        "lines": sum(house.lines.values()),
        "layers": len(house.layers),
        "imports of one module by another": len(house.imports),
        "lines of the largest module": max(house.lines.values()),
        "lines of the longest function, signature and docstring apart": _longest(root),
        "dependencies of a plain install": len(project["dependencies"]),
        "keywords of `PIEFSClassifier`": keywords,
        "files that a small default fit runs through": fit,
        "files that a prediction runs through": predict,
    }


def _longest(root: Path) -> int:
    files = (root / "src").rglob("*.py")
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return max(_body(function) for function in functions)


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[ast.get_docstring(function) is not None :]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _from_within(root: Path) -> list[int]:
    """Keywords and files run through, counted in a process that imports this version."""
    path = os.pathsep.join([str(root / "src"), str(ROOT)])
    call = [sys.executable, "-c", FROM_WITHIN]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


def table() -> str:
    """Both columns, as Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        before = counts(unpacked(BEFORE, Path(folder)))
    now = counts(ROOT)
    lines = [f"| {name} | {before[name]:,} | {now[name]:,} |\n" for name in now]
    return "| | before | now |\n| --- | ---: | ---: |\n" + "".join(lines)


def main() -> None:
    """Write the table into the page."""
    made = table()
    before, rest = PAGE.read_text(encoding="utf-8").split(OPEN)
    PAGE.write_text(f"{before}{OPEN}{made}{CLOSE}{rest.split(CLOSE)[1]}", encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
