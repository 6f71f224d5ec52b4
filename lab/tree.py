"""The annotated tree of modules in CONTRIBUTING.md: `python -m lab.tree` writes it anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from lab.import_graph import read_house

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
OPEN, CLOSE = "<!-- tree -->\n```\n", "```\n<!-- /tree -->"


def tree() -> str:
    """A line for every module: its name, and the first line of its docstring. Top rooms last."""
    package = ROOT / "src" / "piefs"
    files = [path for path in package.iterdir() if path.suffix == ".py"]
    parts = [part for layer in read_house(ROOT).layers for part in layer]
    rooms = [package / part for part in parts if (package / part).is_dir()]
    lines = [_line(path, 1) for path in sorted(files)]
    for room in rooms:
        lines += _folder(room, 1)
    return "src/piefs/\n" + "".join(lines)


def _folder(folder: Path, depth: int) -> Iterator[str]:
    yield _line(folder, depth)
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if (path / "__init__.py").is_file():
            yield from _folder(path, depth + 1)
        elif path.suffix == ".py" and path.stem != "__init__":
            yield _line(path, depth + 1)


def _line(path: Path, depth: int) -> str:
    name = "  " * depth + path.name + "/" * path.is_dir()
    source = path / "__init__.py" if path.is_dir() else path
    about = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return f"{name:26} {about.splitlines()[0].removesuffix('.') if about else ''}".rstrip() + "\n"


def main() -> None:
    """Write the tree into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(OPEN)
    after = rest.split(CLOSE)[1]
    PAGE.write_text(f"{before}{OPEN}{tree()}{CLOSE}{after}", encoding="utf-8")
    print(f"the tree in {PAGE.name} is that of src/piefs")


if __name__ == "__main__":
    main()
