"""How far the grid is: by what cells cost, not by how many they are."""

from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from piefs.paper.cells import Cell
from piefs.paper.progress import BEFOREHAND, Progress, expected_seconds
from piefs.paper.records import Records

RECORDS = Path(__file__).parent.parent / "results" / "records"
FOREST = Cell("two-moons", "random-forest", "supervised", "paper", 0)
MOONS = Cell("two-moons", "piefs-off", "supervised", "paper", 0)
TROTTER = Cell("mnist", "piefs-trotter", "supervised", "paper", 0)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_what_cells_are_expected_to_take_is_right_within_a_factor_of_three():
    taken = defaultdict(list)
    for record in Records(RECORDS):
        if record.cell.is_piefs and record.cell.variant == "paper":
            ratio = record.metrics["seconds"] / expected_seconds(record.cell)
            taken[record.cell.dataset, record.cell.method].append(ratio)
    assert len(taken) == 15
    for ratios in taken.values():
        assert 1 / 3 < median(ratios) < 3


def test_tiny_budgets_take_seconds_whatever_the_cell():
    assert max(expected_seconds(cell, quick=True) for cell in (FOREST, MOONS, TROTTER)) < 10


def test_a_cell_counts_for_what_it_costs():
    progress = Progress({cell: expected_seconds(cell) for cell in (FOREST, MOONS, TROTTER)})
    progress.done += [FOREST, MOONS]
    assert progress.n_ended == 2
    assert 0.01 < progress.share < 0.1
    progress.failed[TROTTER] = "a reason"
    assert progress.share == pytest.approx(1)
    assert progress.seconds_left == pytest.approx(0)


def test_before_anything_is_done_time_is_as_expected_of_so_many_at_a_time():
    clock = Clock()
    progress = Progress({FOREST: 600.0, MOONS: 600.0, TROTTER: 600.0}, clock=clock)
    assert progress.seconds_left == pytest.approx(1800)
    progress.running |= {FOREST: clock(), MOONS: clock()}
    assert progress.seconds_left == pytest.approx(900)


def test_time_goes_on_while_a_long_cell_is_under_way():
    clock = Clock()
    progress = Progress({TROTTER: 1000.0}, clock=clock)
    progress.running[TROTTER] = clock()
    clock.now += 250
    assert progress.share == pytest.approx(0.25)
    assert progress.seconds_left == pytest.approx(750)
    clock.now += 10_000  # it takes longer than was expected, and is not done for that
    assert progress.share == pytest.approx(1)


def test_a_slow_machine_is_believed_after_a_while():
    clock = Clock()
    progress = Progress({MOONS: 100 * BEFOREHAND, TROTTER: 100.0}, clock=clock)
    clock.now += 300 * BEFOREHAND
    progress.done.append(MOONS)
    assert progress.seconds_left == pytest.approx(300, rel=0.02)
