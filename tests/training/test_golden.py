"""What small runs learn does not change unnoticed."""

import json

import pytest

import golden

KEPT = json.loads(golden.GOLDEN.read_text())
DOUBLE, SINGLE = 1e-7, 1e-3
"""Programs for other processors differ by at most 1.3e-10 and 7e-5 (`golden.spread`, LOG.md)."""


@pytest.mark.parametrize("case", golden.CASES)
def test_a_run_ends_at_the_numbers_that_are_kept(case):
    tolerance = SINGLE if "single" in case else DOUBLE
    difference = golden.deviation(golden.measured(case), KEPT[case])
    assert difference < tolerance, (
        f"{case} now ends at other numbers (they differ by {difference:.2g}, relatively). If the "
        "method, its defaults or its random streams were changed on purpose, renew them with "
        "`python tests/golden.py` and say why in LOG.md; if not, find out what has changed"
    )


def test_all_cases_are_kept_and_no_others():
    assert set(KEPT) == set(golden.CASES)


def test_a_setting_changed_by_a_thousandth_is_noticed(monkeypatch):
    case = "classifier-default"
    monkeypatch.setitem(golden.TINY, "learning_rate", 1.001 * 4e-3)
    assert golden.deviation(golden.measured(case), KEPT[case]) > 10 * DOUBLE
    monkeypatch.undo()
    monkeypatch.setitem(golden.TINY, "random_state", 1)
    assert golden.deviation(golden.measured(case), KEPT[case]) > 0.1
