"""How far the grid is: by what cells cost, not by how many they are."""

from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from reproduction.cells import Cell
from reproduction.grid import BEFOREHAND, Progress, expected_seconds
from reproduction.records import Records

RECORDS = Path(__file__).parents[2] / "results" / "records"
FOREST = Cell("two-moons", "random-forest", "supervised", "paper", 0)
MOONS = Cell("two-moons", "piefs-off", "supervised", "paper", 0)
TROTTER = Cell("mnist", "piefs-trotter", "supervised", "paper", 0)


class Clock:
    """Time that passes when it is told to."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_cells_cost_in_proportion_what_they_are_expected_to():
    """Whatever the machine: only ratios matter once cells are done."""
    taken = defaultdict(list)
    for record in Records(RECORDS):
        if record.cell.is_piefs and record.cell.variant == "paper":
            ratio = record.metrics["seconds"] / expected_seconds(record.cell)
            taken[record.cell.dataset, record.cell.method].append(ratio)
    ratios = [median(found) for found in taken.values()]
    assert len(ratios) == 15
    assert max(ratios) < 3 * median(ratios)
    assert min(ratios) > median(ratios) / 3


def test_tiny_budgets_take_seconds_whatever_the_cell():
    assert max(expected_seconds(cell, quick=True) for cell in (FOREST, MOONS, TROTTER)) < 10


def test_a_cell_counts_for_what_it_costs(clock):
    progress = Progress({FOREST: 10.0, MOONS: 90.0, TROTTER: 900.0}, clock=clock)
    for cell in (FOREST, MOONS):
        progress.begin(cell)
        progress.end(cell)
    assert progress.n_ended == 2
    assert progress.share == pytest.approx(0.1)
    progress.begin(TROTTER)
    progress.end(TROTTER, "a reason")
    assert progress.share == pytest.approx(1)
    assert progress.seconds_left == 0


def test_before_anything_is_done_time_is_as_expected_of_so_many_at_a_time(clock):
    progress = Progress({FOREST: 600.0, MOONS: 600.0, TROTTER: 600.0}, clock=clock)
    assert progress.seconds_left == pytest.approx(1800)
    progress.begin(FOREST)
    progress.begin(MOONS)
    assert progress.seconds_left == pytest.approx(900)


def test_time_goes_on_while_a_long_cell_is_under_way(clock):
    progress = Progress({TROTTER: 1000.0}, clock=clock)
    progress.begin(TROTTER)
    clock.now += 250
    assert progress.share == pytest.approx(0.25)
    assert progress.seconds_left == pytest.approx(750)


def test_a_cell_that_takes_longer_than_expected_is_not_done_for_that(clock):
    progress = Progress({TROTTER: 1000.0}, clock=clock)
    progress.begin(TROTTER)
    clock.now += 10_000
    assert progress.share < 1
    assert progress.seconds_left > 0


def test_a_slow_machine_is_believed_after_a_while(clock):
    progress = Progress({MOONS: 100 * BEFOREHAND, TROTTER: 100.0}, clock=clock)
    progress.begin(MOONS)
    clock.now += 300 * BEFOREHAND
    progress.end(MOONS)
    progress.begin(TROTTER)
    clock.now += 150
    assert progress.seconds_left == pytest.approx(150, rel=0.05)


def test_the_end_does_not_come_before_that_of_the_longest_cell(clock):
    progress = Progress({FOREST: 10.0, MOONS: 10.0, TROTTER: 1000.0}, clock=clock)
    progress.begin(FOREST)
    progress.begin(MOONS)
    assert progress.seconds_left == pytest.approx(1000)
