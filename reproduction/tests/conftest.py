import pytest

from reproduction.cells import Cell
from reproduction.runs import work

MOONS = Cell("two-moons", "piefs-off", "supervised", "paper", 0)
FOREST = Cell("two-moons", "random-forest", "supervised", "paper", 0)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Tiny runs of ours, with and without labels, and of a baseline."""
    folder = tmp_path_factory.mktemp("results")
    for cell in (MOONS, FOREST, Cell("two-moons", "piefs-diag", "unsupervised", "paper", 0)):
        work(cell, folder, quick=True)
    return folder
