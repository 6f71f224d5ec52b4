"""The modules of `piefs` and who imports whom, as a picture: `python -m lab.import_graph`.

`--commit` draws another commit, unpacked to a folder of its own. A row is a layer of that commit's
contract in `pyproject.toml`, a dot a module (its area is its lines), a line an import. Imports
within a layer bend; those that point upwards are orange.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import grimp
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from PIL import Image

ROOT = Path(__file__).parent.parent
COLORS = (
    *("#7a7a7a", "#e69f00", "#8c6d31", "#cc79a7", "#009e73"),
    *("#0072b2", "#7a4b94", "#56b4e9", "#b3de69"),
)
MOST_NAMES = 190
"""With more modules than these, their names would cover one another."""


@dataclass(frozen=True)
class House:
    """Modules with their lines, the layer of each (0 is the lowest), and who imports whom."""

    lines: Mapping[str, int]
    layers: tuple[tuple[str, ...], ...]
    imports: frozenset[tuple[str, str]]

    @property
    def modules(self) -> list[str]:
        """All modules but the package itself, whose names are imported when first used."""
        return sorted(name for name in self.lines if name != "piefs")

    def layer(self, module: str) -> int:
        """The number of a module's layer, from below."""
        return next(i for i, parts in enumerate(self.layers) if _part(module) in parts)


def read_house(root: Path) -> House:
    """The package under `root / "src"`, and the layers of the contract beside it."""
    contract = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in contract["tool"]["importlinter"]["contracts"])
    sys.path.insert(0, str(root / "src"))
    try:
        graph = grimp.build_graph("piefs", cache_dir=None)
    finally:
        sys.path.remove(str(root / "src"))
    lines = {module: _lines(root / "src", module) for module in graph.modules}
    imports = {
        (module, imported)
        for module in graph.modules - {"piefs"}
        for imported in graph.find_modules_directly_imported_by(module) - {"piefs"}
    }
    ordered = tuple(tuple(p.strip() for p in layer.split("|")) for layer in reversed(layers))
    return House(lines, ordered, frozenset(imports))


def _lines(source: Path, module: str) -> int:
    path = source.joinpath(*module.split("."))
    package = path / "__init__.py"
    file = package if package.is_file() else path.with_suffix(".py")
    return len(file.read_text(encoding="utf-8").splitlines())


def positions(house: House) -> dict[str, tuple[float, float]]:
    """A row for each layer; in it, the modules of one part together, near what they import."""
    rows: list[list[str]] = [[] for _ in house.layers]
    for module in house.modules:
        rows[house.layer(module)].append(module)
    places: dict[str, tuple[float, float]] = {}
    for height, row in enumerate(rows):
        below = {m: [places[b][0] for a, b in house.imports if a == m and b in places] for m in row}
        centre = {m: float(np.mean(below[m])) if below[m] else 0.5 for m in row}
        parts = {part: [m for m in row if _part(m) == part] for part in map(_part, row)}
        order = sorted(parts, key=lambda part: np.mean([centre[m] for m in parts[part]]))
        placed = [m for part in order for m in sorted(parts[part], key=centre.__getitem__)]
        for i, module in enumerate(placed):
            places[module] = ((i + 0.5) / len(placed), float(height))
    return places


def _part(module: str) -> str:
    return module.split(".")[1]


def draw(house: House, ax: Axes) -> None:
    """Draw the modules and their imports into `ax`."""
    places = positions(house)
    for module, imported in sorted(house.imports):
        (x0, y0), (x1, y1) = places[module], places[imported]
        upwards = y1 > y0
        bend = 0.03 / max(0.2, abs(x0 - x1)) if y0 == y1 else 0.0
        arrow = FancyArrowPatch(
            (x0, y0),
            (x1, y1),
            connectionstyle=f"arc3,rad={bend if x0 < x1 else -bend}",
            arrowstyle="-",
            color="#d55e00" if upwards else "#1c2733",
            alpha=0.9 if upwards else 0.16,
            linewidth=1.2 if upwards else 0.6,
        )
        ax.add_patch(arrow)
    colors = cycle(COLORS)
    for height, parts in enumerate(house.layers):
        for part in parts:
            members = [m for m in places if _part(m) == part]
            color = next(colors)
            area = [max(12.0, house.lines[m] * 0.7) for m in members]
            x, y = zip(*map(places.__getitem__, members), strict=True)
            ax.scatter(x, y, s=area, color=color, zorder=3, edgecolor="white")
        ax.text(-0.015, height, _wrapped(parts), ha="right", va="center", fontsize=9)
        if len(house.modules) <= MOST_NAMES:
            _write_names(ax, [m for m in places if house.layer(m) == height], places)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.7, len(house.layers) - 0.4))
    ax.set_axis_off()


def _wrapped(parts: tuple[str, ...]) -> str:
    return "\n".join(" · ".join(parts[i : i + 3]) for i in range(0, len(parts), 3))


def _write_names(ax: Axes, members: list[str], places: Mapping[str, tuple[float, float]]) -> None:
    for module in members:
        x, y = places[module]
        name = module.removeprefix("piefs.").split(".", 1)[-1]
        ax.text(x, y - 0.13, name, rotation=60, ha="right", va="top", fontsize=6, zorder=4)


def unpacked(commit: str, folder: Path) -> Path:
    """The files of a commit, in `folder`."""
    call = ["git", "archive", commit, "src", "pyproject.toml"]
    content = subprocess.run(call, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        files.extractall(folder, filter="data")
    return folder


def save(figure: Figure, path: Path) -> None:
    """Write a PNG of few colours, a quarter of the size of one with all of them."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=120)
    Image.open(drawn).convert("RGB").quantize(96).save(path, optimize=True)


def main() -> None:
    """Draw the package as it is here, or as it was at a commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", help="draw this commit instead of the files here")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images/imports.png")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        house = read_house(unpacked(options.commit, Path(folder)) if options.commit else ROOT)
    figure, ax = plt.subplots(figsize=(13, 8), layout="constrained")
    draw(house, ax)
    save(figure, options.out)
    lines = sum(house.lines.values())
    largest = max(house.lines, key=house.lines.__getitem__)
    print(f"{len(house.lines)} modules, {lines:,} lines, {len(house.layers)} layers,")
    print(f"{len(house.imports)} imports, largest: {largest} ({house.lines[largest]} lines)")
    print(f"drawn to {options.out}")


if __name__ == "__main__":
    main()
